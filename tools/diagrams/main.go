// Command diagrams draws the diagrams of the documentation as SVG, for light and dark pages:
//
//	go -C tools run ./diagrams DIRECTORY
//
// Each diagram is a function in a file of its own. It fails if a text does not fit in its place.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// diagrams are the diagrams by the name of their file.
var diagrams = map[string]func() *canvas{
	"lifetimes":     lifetimes,
	"host-states":   hostStates,
	"changes":       deploymentChanges,
	"shared-server": sharedServer,
	"limit":         applyWithLimit,
	"trace":         applyAsTrace,
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: diagrams DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "diagrams:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // part of the repository
		return err
	}
	for name, draw := range diagrams {
		c := draw()
		if err := errors.Join(c.problems...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(c.svg()),
			0o644); err != nil { //nolint:gosec // part of the repository
			return err
		}
	}
	return nil
}
