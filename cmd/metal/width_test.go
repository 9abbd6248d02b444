package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Where there is no terminal, what people read has at most 80 columns, except words that cannot be broken, and commands.
func TestTextsFitIntoEightyColumns(t *testing.T) {
	t.Parallel()
	s := listedSite(t)
	s.ironic.Set(name(3), "last_error", strings.Repeat("The image is broken. ", 20))
	lines := [][]string{
		{"doctor"}, {"list", "nodes"}, {"list", "allocations"}, {"show", name(3)}, {"history", name(3)}, {"timeline", name(3)},
	}
	var helps func(cmd *cobra.Command)
	helps = func(cmd *cobra.Command) {
		lines = append(lines, append(strings.Fields(cmd.CommandPath())[1:], "--help"))
		for _, sub := range cmd.Commands() {
			helps(sub)
		}
	}
	helps(newRoot(func(string) string { return "" }, &rest.Secrets{}))
	for _, args := range lines {
		_, stdout, _ := s.run(t, args...)
		for line := range strings.Lines(stdout) {
			if text := strings.TrimSpace(line); !strings.HasPrefix(text, "metal ") && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 && strings.Contains(text, " ") {
				t.Errorf("metal %s: %d columns: %s", strings.Join(args, " "), utf8.RuneCountInString(line)-1, text)
			}
		}
	}
}
