// Package browser drives the order page in a real Chromium against the real pipeline. It is a module of its own, so that the project
// does not depend on a browser's driver. Its test has the build tag browser: `test/browser/run` installs what it needs and runs it.
//
// # Rules
//
// Nothing sleeps: the test waits until the page shows what it should. Every run fails for any error in the browser's console, for any
// exception, for any dialog, and for any request to another host than the order service.
//
// EBB_SCREENSHOTS names a folder for pictures of every page, in light and in dark.
package browser
