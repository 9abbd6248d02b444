package acctest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Workspace is a directory with a configuration, in which a real CLI runs the real provider in processes of their own:
// what interrupts, kills and logs look like cannot be seen inside one test process.
type Workspace struct {
	Dir string

	t   testing.TB
	cli string
	env []string
}

// build makes the provider's binary once for a test process.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "metal-acc-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "terraform-provider-metal"), //nolint:noctx // part of the test binary's start
		"github.com/terraform-provider-metal/terraform-provider-metal").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the provider: %w\n%s", err, out)
	}
	return dir, nil
})

// NewWorkspace makes a workspace with a configuration, which needs no terraform block. It needs the CLI that acceptance
// tests need, and skips the test where those are not asked for (TF_ACC).
func NewWorkspace(t testing.TB, config string) *Workspace {
	t.Helper()
	skipUnlessAsked(t)
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cli := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if cli == "" {
		if cli, err = exec.LookPath("terraform"); err != nil {
			t.Fatal("no CLI: set TF_ACC_TERRAFORM_PATH")
		}
	}
	w := &Workspace{Dir: t.TempDir(), t: t, cli: cli}
	rc := filepath.Join(w.Dir, "cli.rc")
	w.write(rc, fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terraform-provider-metal/metal\" = %q\n  }\n  direct {}\n}\n", binary))
	w.Configure(config)
	for _, variable := range os.Environ() {
		owned := func(prefix string) bool { return strings.HasPrefix(variable, prefix) }
		if !slices.ContainsFunc([]string{"TF_", "METAL_", "OS_", "ONEVIEW_"}, owned) {
			w.env = append(w.env, variable)
		}
	}
	w.env = append(w.env, "TF_CLI_CONFIG_FILE="+rc, "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return w
}

// Configure replaces the configuration.
func (w *Workspace) Configure(config string) {
	w.t.Helper()
	w.write(filepath.Join(w.Dir, "main.tf"),
		"terraform {\n  required_providers {\n    metal = {\n      source = \"terraform-provider-metal/metal\"\n    }\n  }\n}\n"+config)
}

func (w *Workspace) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// Setenv adds a variable for the CLI and the provider.
func (w *Workspace) Setenv(name, value string) { w.env = append(w.env, name+"="+value) }

// Trace makes the provider log all that it does.
func (w *Workspace) Trace() {
	w.Setenv("TF_LOG_PROVIDER", "TRACE")
	w.Setenv("TF_LOG_PATH", filepath.Join(w.Dir, "trace.log"))
}

// trace is the log of a workspace that Traces.
func (w *Workspace) trace() string {
	content, _ := os.ReadFile(filepath.Join(w.Dir, "trace.log")) // without one there is nothing in it
	return string(content)
}

// Run runs the CLI and returns what it printed, without colours, and its exit code.
func (w *Workspace) Run(args ...string) (output string, code int) {
	w.t.Helper()
	r := w.Start(args...)
	return r.Wait()
}

// Must is Run that fails the test on any exit code but 0.
func (w *Workspace) Must(args ...string) string {
	w.t.Helper()
	output, code := w.Run(args...)
	if code != 0 {
		w.t.Fatalf("%s %s: exit code %d\n%s", filepath.Base(w.cli), strings.Join(args, " "), code, output)
	}
	return output
}

// Plan runs a plan and reports whether it proposes changes.
func (w *Workspace) Plan() (output string, changes bool) {
	w.t.Helper()
	output, code := w.Run("plan", "-detailed-exitcode")
	if code == 1 {
		w.t.Fatalf("plan failed\n%s", output)
	}
	return output, code == 2
}

// Running is a CLI at work, in a process group of its own with its provider.
type Running struct {
	w      *Workspace
	cmd    *exec.Cmd
	output bytes.Buffer
}

// Start starts the CLI.
func (w *Workspace) Start(args ...string) *Running {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	w.t.Cleanup(cancel)
	r := &Running{w: w, cmd: exec.CommandContext(ctx, w.cli, args...)}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = w.Dir, w.env, &r.output, &r.output
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Wait waits for the CLI to end.
func (r *Running) Wait() (output string, code int) {
	r.w.t.Helper()
	_ = r.cmd.Wait() // the exit code says it
	return r.output.String(), r.cmd.ProcessState.ExitCode()
}

// CPU is the processor time that the CLI and its providers took. Unlike the time on the clock, it does not depend on what else the machine
// is doing.
func (r *Running) CPU() time.Duration {
	return r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
}

// Interrupt is Ctrl-C: SIGINT to the CLI and all that it started.
func (r *Running) Interrupt() { r.signal(syscall.SIGINT) }

// InterruptProvider is Interrupt for the hooks of a fake: it returns when the provider has been told to stop, and its contexts
// have ended. That is in its log, so the workspace must be one that Traces.
func (r *Running) InterruptProvider() {
	r.w.t.Helper()
	before := len(r.w.trace())
	r.Interrupt()
	if !inTime(func() bool { return strings.Contains(r.w.trace()[before:], "Closed all our contexts") }) {
		r.w.t.Error("waited a minute for the provider to be told to stop")
	}
}

// Kill is kill -9 of the CLI and the provider.
func (r *Running) Kill() { r.signal(syscall.SIGKILL) }

func (r *Running) signal(s syscall.Signal) {
	r.w.t.Helper()
	if err := syscall.Kill(-r.cmd.Process.Pid, s); err != nil {
		r.w.t.Fatal(err)
	}
}

// State is the state file, and whatever backup of it there is.
func (w *Workspace) State() string {
	w.t.Helper()
	var all strings.Builder
	names, err := filepath.Glob(filepath.Join(w.Dir, "terraform.tfstate*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}
