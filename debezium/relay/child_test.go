package relay_test

// runChild is filled below by the crash test.
func runChild() {}
