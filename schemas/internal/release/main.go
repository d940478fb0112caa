// Command release adds the present schema of every event type whose schema has changed to schemas/released. It runs by go generate,
// in the folder of package schemas, after the types were generated.
package main

import (
	"fmt"
	"os"

	"github.com/ebbline/ebb/schemas"
)

func main() {
	written, err := schemas.WriteReleases("released")
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, name := range written {
		fmt.Println("released", name)
	}
}
