// Package destinations holds the shipped destination files.
package destinations

import "embed"

// Files are the shipped destination files, for a binary that runs without its source tree.
//
//go:embed *.yaml
var Files embed.FS
