package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

var update = flag.Bool("update", false, "write testdata/public.txt")

// docs/guides/stability.md promises that no command and no flag goes within a major version.
func TestPublic_commandsAndFlagsAreKept(t *testing.T) {
	t.Parallel()
	var found []string
	var list func(cmd *cobra.Command)
	list = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		found = append(found, cmd.CommandPath())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				found = append(found, cmd.CommandPath()+" --"+f.Name+": "+f.Value.Type())
			}
		})
		for _, sub := range cmd.Commands() {
			list(sub)
		}
	}
	list(newRoot(os.Getenv, &rest.Secrets{}))
	slices.Sort(found)
	const file = "testdata/public.txt"
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(found, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range kept {
		if !slices.Contains(found, line) {
			t.Errorf("%q is gone. From 1.0 on, docs/guides/stability.md promises it until the next major version. Before, say so in "+
				".changes, and write the list: go test ./cmd/metal -run Public -update", line)
		}
	}
	for _, line := range found {
		if !slices.Contains(kept, line) {
			t.Errorf("%q is new: go test ./cmd/metal -run Public -update", line)
		}
	}
}
