package main

import (
	"errors"
	"io/fs"

	"github.com/ebbline/ebb/consumers/destinations"
	"github.com/ebbline/ebb/destination/spec"
)

// shippedDestinations parses the files in the binary.
func shippedDestinations() ([]*spec.Spec, error) {
	names, err := fs.Glob(destinations.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var set []*spec.Spec
	var problems []error
	for _, name := range names {
		text, err := destinations.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := spec.Parse(name, text)
		problems = append(problems, err)
		set = append(set, s)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return set, spec.CheckSet(set)
}
