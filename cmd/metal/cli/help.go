package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a set of flags that the help shows under a title.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// NewRoot returns the command metal, without its subcommands. All of them have the flags of the Ironic client and of the log.
func NewRoot(s *Settings, about string) *cobra.Command {
	root := NewGroup("metal", "The operator's tool for bare metal in OpenStack Ironic", about)
	root.Version = s.Version
	root.Annotations = map[string]string{Environment: otherVariables, Files: files}
	root.SilenceErrors, root.SilenceUsage = true, true
	s.groups = []flagGroup{
		{"OneView flags; set the password in ONEVIEW_PASSWORD", s.oneviewFlags()},
		{"Ironic flags; set the password in METAL_PASSWORD, and other settings of Keystone in OS_*", s.ironicFlags()},
		{"Log flags", s.logFlags()},
	}
	for _, group := range s.groups {
		group.flags.VisitAll(func(f *pflag.Flag) { annotate(f, section, group.title) })
	}
	for _, group := range s.groups[1:] {
		root.PersistentFlags().AddFlagSet(group.flags)
	}
	root.SetHelpCommand(NewHelp(root))
	root.SetFlagErrorFunc(explainFlag)
	root.SetUsageFunc(func(cmd *cobra.Command) error { return writeUsage(cmd, cmd.OutOrStderr(), s.groups) })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		_, _ = io.WriteString(Folded(out), joined(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)))+"\n\n")
		_ = writeUsage(cmd, out, s.groups)
	})
	root.SetVersionTemplate("metal {{.Version}}\n")
	return root
}

const (
	otherVariables = `
  METAL_PASSWORD  The password for HTTP basic authentication.
  OS_*            The settings of Keystone that the openstack command reads, such as OS_CLOUD, OS_AUTH_URL and OS_PASSWORD.`
	files = `
  clouds.yaml, secure.yaml, clouds-public.yaml  Settings of Keystone, in the working directory, ~/.config/openstack or /etc/openstack.`
)

// OneViewFlags returns the flags of the OneView client.
func (s *Settings) OneViewFlags() *pflag.FlagSet { return s.groups[0].flags }

// NewGroup returns a command that only has subcommands. Without a subcommand it writes its help and ends with ExitUsage.
func NewGroup(name, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Long: long, Args: noSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			return errors.Join(cmd.Help(), &Failure{Code: ExitUsage})
		},
	}
}

// noSuchCommand returns an error for arguments of a group, because they name no subcommand.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", cmd.CommandPath()+" "+args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("%s; did you mean %q?", text, cmd.CommandPath()+" "+near[0])
	}
	return fmt.Errorf("%s; %s --help lists the commands", text, cmd.CommandPath())
}

// OnlyFlags returns an error for arguments that are not flags.
func OnlyFlags(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes only flags, not the argument %q", cmd.CommandPath(), args[0])
}

// OneNode returns an error unless the arguments name one node.
func OneNode(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("%s takes the name or the UUID of one node", cmd.CommandPath())
	}
	return nil
}

// explainFlag adds to the error of a wrong flag which help explains it.
func explainFlag(cmd *cobra.Command, err error) error {
	advice := cmd.CommandPath() + " --help lists the flags"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedShortnames()) > 1 {
		advice = "flags begin with two dashes; " + advice
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// NewHelp returns the command that explains the subcommands of a group.
func NewHelp(group *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Explain a command", ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := group.Find(args)
			if err == nil && len(rest) > 0 {
				err = noSuchCommand(cmd, rest)
			}
			if err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// writeUsage writes the usage of a command: its subcommands or its own flags, then the groups of flags that it shares with other
// commands, then the exit codes.
func writeUsage(cmd *cobra.Command, to io.Writer, groups []flagGroup) error {
	var text strings.Builder
	_, arguments, _ := strings.Cut(cmd.Use, " ")
	call := strings.TrimSpace(cmd.CommandPath()+" "+arguments) + " [flags]"
	if cmd.HasAvailableSubCommands() {
		call = cmd.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(&text, "Usage:\n  %s\n", call)
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\nCommands:\n")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&text, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	for _, group := range append(sections(cmd, groups), groups...) {
		if isOffered(cmd, group) {
			fmt.Fprintf(&text, "\n%s:\n%s", group.title, group.flags.FlagUsagesWrapped(Width(to)))
		}
	}
	fmt.Fprintf(&text, "\nExit codes:%s", joined(ExitCodes))
	_, err := io.WriteString(Folded(to), text.String())
	return err
}

// joined joins the lines of the paragraphs of a text, and those of its rows, which go on in indented lines.
func joined(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		last := len(lines) - 1
		begins := last < 0 || lines[last] == "" || line == ""
		inText := !strings.HasPrefix(line, "  ") && !begins && !strings.HasPrefix(lines[last], "  ")
		if inText || !begins && strings.HasPrefix(line, "    ") {
			lines[last] += " " + strings.TrimLeft(line, " ")
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// sections returns the flags of a command that are in none of the groups, by their sections.
func sections(cmd *cobra.Command, groups []flagGroup) []flagGroup {
	found := []flagGroup{{noSection, newFlags()}}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if slices.ContainsFunc(groups, func(g flagGroup) bool { return g.flags.Lookup(f.Name) != nil }) {
			return
		}
		title := sectionOf(f)
		i := slices.IndexFunc(found, func(g flagGroup) bool { return g.title == title })
		if i < 0 {
			i, found = len(found), append(found, flagGroup{title, newFlags()})
		}
		found[i].flags.AddFlag(f)
	})
	return found
}

// isOffered reports whether a command accepts the flags of a group.
func isOffered(cmd *cobra.Command, group flagGroup) bool {
	offered := false
	group.flags.VisitAll(func(f *pflag.Flag) { offered = offered || cmd.Flag(f.Name) == f })
	return offered
}
