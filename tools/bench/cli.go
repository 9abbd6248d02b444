package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience is how long a CLI that was interrupted may take to save its state.
const patience = time.Minute

// build compiles a program of the module in dir as the provider, and returns the directory for dev_overrides.
func build(ctx context.Context, dir, program, into string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(into, "terraform-provider-metal"), program)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, output)
	}
	return into, nil
}

// findCLI asks tools/cli, which takes its hint from the variable CLI.
func findCLI(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "tools", "cli"), os.Getenv("CLI"))
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("tools/cli: %w", err)
	}
	return strings.TrimSpace(string(path)), nil
}

// workspace is a directory with a configuration, in which a CLI runs a provider.
type workspace struct {
	dir, cli, endpoint string
	login              bool // whether the provider sees the credentials in this process's environment
}

// newWorkspace makes a workspace for an Ironic.
func newWorkspace(dir, cli, endpoint, config string) (*workspace, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config = "terraform {\n  required_providers {\n    metal = { source = \"terraform-provider-metal/metal\" }\n  }\n}\n" + config
	return &workspace{dir: dir, cli: cli, endpoint: endpoint}, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config), 0o600)
}

// cost is what a run of the CLI took.
type cost struct {
	wall, cpu time.Duration // cpu: of the CLI and the providers that it started
}

// emptyPlan plans, and fails if there is something to change.
func (w *workspace) emptyPlan(ctx context.Context, provider string, args ...string) (cost, error) {
	took, output, err := w.output(ctx, provider, append([]string{"plan"}, args...)...)
	if err == nil && !strings.Contains(output, "No changes.") {
		err = fmt.Errorf("the plan is not empty:\n%s", tail(output))
	}
	return took, err
}

// run runs the CLI with the provider that is in a directory.
func (w *workspace) run(ctx context.Context, provider string, args ...string) (cost, error) {
	took, _, err := w.output(ctx, provider, args...)
	return took, err
}

// output is run that also returns what the CLI printed, and after a failure the time, too.
func (w *workspace) output(ctx context.Context, provider string, args ...string) (cost, string, error) {
	rc := filepath.Join(w.dir, "cli.rc")
	overrides := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terraform-provider-metal/metal\" = %q\n  }\n "+
		" direct {}\n}\n", provider)
	if err := os.WriteFile(rc, []byte(overrides), 0o600); err != nil {
		return cost{}, "", err
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, w.cli, append(args, "-input=false", "-no-color")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &output, &output
	cmd.Env = append(w.environment(), "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "METAL_ENDPOINT="+w.endpoint)
	// A Ctrl-C of the terminal must not reach the CLI twice: then it would not save its state.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = patience
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return cost{wall: time.Since(start)}, output.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(w.cli), args[0], err, tail(output.String()))
	}
	return cost{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, output.String(), nil
}

// tail is the end of a long output.
func tail(output string) string { return output[max(0, len(output)-4000):] }

// environment is this process's without what would change the measurement.
func (w *workspace) environment() []string {
	changing := []string{"TF_", "METAL_"}
	if !w.login {
		changing = append(changing, "OS_", "IRONIC_", "ONEVIEW_")
	}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		if w.login && (strings.HasPrefix(variable, "METAL_USERNAME=") || strings.HasPrefix(variable, "METAL_PASSWORD=")) {
			return false
		}
		return slices.ContainsFunc(changing, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
	})
}
