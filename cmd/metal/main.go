// Command metal is the operator's tool of the provider. It works with OpenStack Ironic, and with HPE OneView if the two share servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// version is set at build time.
var version = "dev"

// Exit codes.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitNodesFailed = 3
	exitWouldChange = 4
	exitNoHardware  = 5
	exitGoalMissed  = 6
	exitNoConsole   = 7
)

// exitCodes describes the exit codes in the help of every command.
const exitCodes = `
  0  success, or the service or watch was stopped
  1  failure of the command: Ironic or the appliance did not answer or refused the login, or the command was stopped
  2  wrong flags or settings; the command made no request
  3  some nodes failed, or migrate skipped some; a line for each says why. The command has handled all others. For watch:
     machines of the selection are in a failed state
  4  --dry-run would change something
  5  no node in Ironic has server_hardware_uri in its driver_info
  6  watch has ended because of --until-idle, and not all machines have reached --goal
  7  console has nothing to show: the node has no console, it is not enabled, Ironic tells no address of it, or reading the
     address would end the session of another user
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// failure ends a command with an exit code. An error of another type means that the command line is wrong.
type failure struct {
	code int
	err  error // message for standard error; nil: the command has written it already
}

// Error returns the message; empty if the command has written it already.
func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// run runs the program and returns its exit code. What it writes is printable, except the control sequences of watch.Screen.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	root := newRoot(getenv)
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args for nil
	root.SetOut(&rest.Printer{To: stdout})
	root.SetErr(&rest.Printer{To: stderr})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	end := &failure{code: exitUsage, err: err}
	errors.As(err, &end)
	if end.err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "metal:", end.err)
	}
	return end.code
}

// newRoot returns the command metal with all its subcommands.
func newRoot(getenv func(string) string) *cobra.Command {
	s := &settings{getenv: getenv}
	root := newGroup("metal", "The operator's tool for bare metal in OpenStack Ironic", aboutMetal)
	root.Version = version
	root.SilenceErrors, root.SilenceUsage = true, true
	groups := []flagGroup{
		{"OneView flags; set the password in ONEVIEW_PASSWORD", s.oneviewFlags()},
		{"Ironic flags; set the password in METAL_PASSWORD, and other settings of Keystone in OS_*", s.ironicFlags()},
		{"Log flags", s.logFlags()},
	}
	oneview := newOneView(s)
	oneview.PersistentFlags().AddFlagSet(groups[0].flags)
	root.PersistentFlags().AddFlagSet(groups[1].flags)
	root.PersistentFlags().AddFlagSet(groups[2].flags)
	root.AddCommand(newConsole(s), newWatch(s), oneview, newVersion())
	root.SetHelpCommand(newHelp(root))
	root.SetFlagErrorFunc(explainFlag)
	root.SetUsageFunc(func(cmd *cobra.Command) error { return writeUsage(cmd, groups) })
	root.SetVersionTemplate("metal {{.Version}}\n")
	return root
}

const aboutMetal = `metal is the operator's tool for bare metal in OpenStack Ironic. It needs neither Terraform nor a state.

Settings come from flags, or from the environment variables that the flags name; flags win. Passwords come from the
environment only, so that no list of processes shows them.`

// newVersion returns the command metal version.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: onlyFlags,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "metal", version) },
	}
}
