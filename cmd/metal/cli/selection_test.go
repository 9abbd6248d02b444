package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// An empty variable of a shell, or a file that cannot be read to its end, never selects other machines than its value would.
func TestSelectionRefusesWhatIsEmpty(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "names")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--allocation", "web-1,"}, "--allocation is empty"},
		{[]string{"--allocation", "", "--all"}, "--allocation is empty"},
		{[]string{"--resource-class", "", "--provision-state", "available"}, "--resource-class is empty"},
		{[]string{"--name-regex", "", "--owner", "a"}, "--name-regex is empty"},
		{[]string{"--provision-state", ""}, "--provision-state is empty"},
		{[]string{"--file", ""}, "--file is empty"},
		{[]string{"--file", file("# nothing\n")}, "names no node"},
		{[]string{""}, "the name of a node is empty"},
		{nil, "needs the names"},
		{[]string{"rack1-07", "--resource-class", "gpu"}, "but not both"},
		{[]string{"--file", file("rack1-07 # fan\n\nrack1-08\n")}, ""},
		{[]string{"--file", file("rack1-07" + strings.Repeat(" ", 100_000) + "rack1-08")}, ""},
	} {
		cmd, flags := &cobra.Command{Use: "power"}, cli.SelectionFlags{}
		flags.DeclareForOnce(cmd)
		if err := cmd.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		selected, err := flags.Selection(cmd, cmd.Flags().Args())
		switch {
		case tt.want == "" && (err != nil || len(selected.Nodes) != 2):
			t.Errorf("%q: %v, %v", tt.args, selected, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%q: %v, want %s", tt.args, err, tt.want)
		}
	}
}
