// Package manual writes the manual pages of metal from its commands: a page of the program, and one of each command.
package manual

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

const about = `metal man writes the manual pages of metal: one of the program, and one of each command. The packages have them already.

The date of the pages is that of SOURCE_DATE_EPOCH, in seconds since 1970, or today.

  metal man ~/.local/share/man/man1   for metal that go install has built; then man metal-watch shows a page`

// Command returns the command metal man.
func Command(s *cli.Settings) *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write the manual pages", Long: about,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return fmt.Errorf("%s takes the directory of the pages", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := dateOf(s.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			if err := write(cmd.Root(), args[0], s.Version, date); err != nil {
				return &cli.Failure{Code: cli.ExitError, Err: err}
			}
			return nil
		},
	}
}

// dateOf returns a number of seconds since 1970 as a date; now if there is none.
func dateOf(seconds string) (time.Time, error) {
	number, err := strconv.ParseInt(cmp.Or(seconds, "0"), 10, 64)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q; it must be a number of seconds", seconds)
	case seconds == "":
		return time.Now(), nil
	}
	return time.Unix(number, 0), nil
}

// write writes the pages of a program into a directory.
func write(root *cobra.Command, directory, version string, date time.Time) error {
	if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // pages are for all users
		return err
	}
	root.InitDefaultCompletionCmd()
	for _, cmd := range described(root) {
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		if err := os.WriteFile(filepath.Join(directory, nameOf(cmd)+".1"), []byte(pageOf(cmd, version, date)), 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// described returns a command and all commands below it that have a page. The commands below metal completion, which is cobra's, have none.
func described(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && cmd.Name() != "completion" {
			all = append(all, described(sub)...)
		}
	}
	return all
}
