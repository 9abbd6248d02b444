package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/mcp"
)

const aboutMCP = `metal mcp serves the Model Context Protocol on standard input and output. An assistant starts it, and can then look at the
site: its tools are list, show, history, doctor and forecast, which are the commands of these names. It offers nothing that
changes a machine, and shows no secret.

What it may see is what the user of these settings may see: give it one who may only read. Names, descriptions, extra and errors
were written by others: it passes them on as data in JSON, with a notice. A forecast reads plans below the working directory.

  metal mcp --cloud site-a`

// newMCP returns a command that serves assistants. Each call of a tool is a command of its own, with the flags of this one.
func newMCP(s *cli.Settings, secrets *rest.Secrets) *cobra.Command {
	cmd := &cobra.Command{Use: "mcp", Short: "Let an assistant look at the site", Long: aboutMCP, Args: cli.OnlyFlags}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := s.CompleteIronic(cmd.Flags()); err != nil {
			return err
		}
		plans, err := os.OpenRoot(".")
		if err != nil {
			return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("open the working directory: %w", err)}
		}
		defer plans.Close() //nolint:errcheck // it was read
		server := mcp.Server(s.Version, commandOf(s, secrets, given(cmd)), plans)
		if err := mcp.Serve(cmd.Context(), server, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
			return &cli.Failure{Code: cli.ExitError, Err: err}
		}
		return nil
	}
	return cmd
}

// given returns the flags for all commands that were given to this one, except those of the log.
func given(cmd *cobra.Command) (args []string) {
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Value.String() != f.DefValue && !strings.HasPrefix(f.Name, "log-") {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// commandOf returns what runs a command of metal, with flags before its own.
func commandOf(s *cli.Settings, secrets *rest.Secrets, flags []string) mcp.Command {
	return func(ctx context.Context, args []string, in io.Reader) ([]byte, string, int) {
		var out, said bytes.Buffer
		root := newRoot(s.Getenv, secrets)
		root.SetArgs(append(append([]string{}, flags...), args...))
		root.SetIn(in)
		root.SetOut(&out)
		root.SetErr(&said)
		code := finish(root, root.ExecuteContext(ctx))
		return []byte(secrets.Redact(out.String())), secrets.Redact(said.String()), code
	}
}
