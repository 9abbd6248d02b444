// Command metal is the operator's tool of the provider. It works with OpenStack Ironic, and with HPE OneView if the two share servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/manual"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/observe"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing/export"
)

// version is set when a release is built.
var version = "dev"

// installed returns the version that go install has built; otherwise the given one.
func installed(info *debug.BuildInfo, version string) string {
	if info == nil || version != "dev" || !strings.HasPrefix(info.Main.Version, "v") {
		return version
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

func main() {
	info, _ := debug.ReadBuildInfo()
	version = installed(info, version)
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals(signal.Ignored)...)
	routine.Go(func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}, func(*routine.PanicError) {})
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// stopSignals are the signals that stop a command, which then says where its machines are and what is left half done. The end of a terminal
// is one of them, unless nohup has asked to ignore it.
func stopSignals(ignored func(os.Signal) bool) []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// run runs the program and returns its exit code. What it writes is printable, except the control sequences of watch.Screen.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	secrets := &rest.Secrets{}
	root := newRoot(getenv, secrets)
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args for nil
	root.SetOut(&rest.Printer{To: stdout})
	root.SetErr(&rest.Printer{To: stderr})
	err := traced(ctx, root, args, export.Start(ctx, getenv, export.Program{
		Name: "metal", Version: version, Clean: func(text string) string { return rest.OneLine(secrets.Redact(text)) },
		Console: root.ErrOrStderr(), Report: func(err error) { fmt.Fprintln(root.ErrOrStderr(), "metal:", err) },
	}))
	return finish(root, err)
}

// finish says why a command has failed, and returns its exit code.
func finish(root *cobra.Command, err error) int {
	if err == nil {
		return cli.ExitDone
	}
	end := &cli.Failure{Code: cli.ExitUsage, Err: err}
	errors.As(err, &end)
	if end.Err != nil {
		cli.Error(root.ErrOrStderr(), end.Err)
	}
	return end.Code
}

// traced executes the command as a call of a run, which it ends.
func traced(ctx context.Context, root *cobra.Command, args []string, run *tracing.Run) error {
	command, _, err := root.Find(args)
	if err != nil {
		return root.ExecuteContext(ctx) // explains the error
	}
	defer run.Close(ctx)
	below, call := run.Call(ctx, command.CommandPath(), false)
	defer call.End(ctx)
	if err = root.ExecuteContext(below); err != nil {
		call.Fail(err.Error())
	}
	return err
}

// newRoot returns the command metal with all its subcommands. Its clients learn secrets.
func newRoot(getenv func(string) string, secrets *rest.Secrets) *cobra.Command {
	s := &cli.Settings{Getenv: getenv, Version: version}
	s.Ironic.Secrets = secrets
	root := cli.NewRoot(s, aboutMetal)
	root.AddCommand(operate.Commands(s)...)
	root.AddCommand(observe.Commands(s)...)
	root.AddCommand(oneview.Command(s), newMCP(s, secrets), manual.Command(s), newVersion())
	s.CompleteArguments(root)
	return root
}

const aboutMetal = `metal is the operator's tool for bare metal in OpenStack Ironic. It needs neither Terraform nor a state.

Settings come from flags, or from the environment variables that the flags name; flags win. Passwords come from the
environment only, so that no list of processes shows them.`

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.OnlyFlags,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "metal", version) },
	}
}
