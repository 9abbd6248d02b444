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
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run runs the program and returns its exit code. What it writes is printable, except the control sequences of watch.Screen.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	root := newRoot(getenv)
	root.SetArgs(append([]string{}, args...)) // cobra reads os.Args for nil
	root.SetOut(&rest.Printer{To: stdout})
	root.SetErr(&rest.Printer{To: stderr})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitDone
	}
	end := &cli.Failure{Code: cli.ExitUsage, Err: err}
	errors.As(err, &end)
	if end.Err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "metal:", end.Err)
	}
	return end.Code
}

// newRoot returns the command metal with all its subcommands.
func newRoot(getenv func(string) string) *cobra.Command {
	s := &cli.Settings{Getenv: getenv, Version: version}
	root := cli.NewRoot(s, aboutMetal)
	root.AddCommand(operate.Commands(s)...)
	root.AddCommand(observe.Commands(s)...)
	root.AddCommand(oneview.Command(s), manual.Command(s), newVersion())
	return root
}

const aboutMetal = `metal is the operator's tool for bare metal in OpenStack Ironic. It needs neither Terraform nor a state.

Settings come from flags, or from the environment variables that the flags name; flags win. Passwords come from the
environment only, so that no list of processes shows them.`

// newVersion returns the command metal version.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.OnlyFlags,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "metal", version) },
	}
}
