// Package manual writes the manual pages of metal from its commands: a page of the program, and one of each command.
package manual

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

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
			cmd.Root().InitDefaultCompletionCmd()
			err = os.MkdirAll(args[0], 0o755) //nolint:gosec // pages are for all users
			if err == nil {
				err = write(cmd.Root(), args[0], doc.GenManHeader{Date: &date, Source: "metal " + s.Version})
			}
			if err != nil {
				return &cli.Failure{Code: cli.ExitError, Err: err}
			}
			return nil
		},
	}
}

// dateOf returns a number of seconds since 1970 as a date; now if there is none. It is in UTC.
func dateOf(seconds string) (time.Time, error) {
	number, err := strconv.ParseInt(cmp.Or(seconds, "0"), 10, 64)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q; it must be a number of seconds", seconds)
	case seconds == "":
		return time.Now().UTC(), nil
	}
	return time.Unix(number, 0).UTC(), nil
}

// write writes the pages of a command, and of those below it, into a directory.
func write(cmd *cobra.Command, directory string, head doc.GenManHeader) error {
	cmd.InitDefaultVersionFlag()
	cmd.Long, cmd.DisableAutoGenTag = description(cmd), true
	page, header := &bytes.Buffer{}, head // GenMan sets the title of the header
	if err := doc.GenMan(cmd, &header, page); err != nil {
		return err
	}
	name := filepath.Join(directory, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	if err := os.WriteFile(name, tidy(page.Bytes(), *head.Date), 0o644); err != nil { //nolint:gosec // pages are for all users
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := write(sub, directory, head); err != nil {
				return err
			}
		}
	}
	return nil
}

// flagItem matches a flag and the tab before its text.
var flagItem = regexp.MustCompile(`(?m)(?:^\.PP\n)?^(\\fB-.*\n)\t`)

// tidy mends what mandoc warns of: cobra writes dates without a day, and flags as paragraphs with tabs.
func tidy(page []byte, date time.Time) []byte {
	page = bytes.Replace(page, []byte(date.Format(`"Jan 2006"`)), []byte(date.Format(`"2006-01-02"`)), 1)
	return flagItem.ReplaceAll(page, []byte(".TP\n$1"))
}

// description returns the description of a command that help shows, and the sections that cobra does not write, in Markdown.
func description(cmd *cobra.Command) string {
	var commands strings.Builder
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&commands, "  %s  %s.\n", sub.Use, sub.Short)
		}
	}
	text := markdown(cmp.Or(cmd.Long, cmd.Short+"."))
	for _, section := range []struct{ title, list string }{
		{"COMMANDS", commands.String()},
		{"ENVIRONMENT", cmd.Annotations[cli.Environment]},
		{"FILES", cmd.Annotations[cli.Files]},
		{"EXIT STATUS", cli.ExitCodes},
	} {
		if section.list != "" {
			text += "\n# " + section.title + "\n" + markdown(section.list)
		}
	}
	return text
}

var (
	// item matches an indented line: a term, and what it means, after a gap or with a capital.
	item = regexp.MustCompile(`^(?:  |\t)(\S.*?)(?:  +(.*)| ([A-Z][a-z].*))?$`)

	special = regexp.MustCompile("[\\\\`*_<>\\[\\]~|&#]")
)

// markdown returns a text of help in Markdown. An indented line becomes a term with a definition. Lines that are indented further belong
// to it.
func markdown(text string) string {
	var to strings.Builder
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if found := item.FindStringSubmatch(line); found != nil {
			to.WriteString("\n`" + found[1] + "`\n:   ")
			line = found[2] + found[3]
		}
		to.WriteString(special.ReplaceAllString(strings.TrimSpace(line), `\$0`) + "\n")
	}
	return to.String()
}
