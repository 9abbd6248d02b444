// Command demo shows the provider on a fake Ironic: a plan, an apply with the limit at work, a rebuild that the plan announces and that
// fails on one machine, the recovery in the next apply, and the destruction. It applies examples/demo with the CLI that tools/cli finds
// (METAL_CLI), from the directory of the repository, and needs no service. make demo builds what it needs and runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// stepTime is the duration of each transient state of a machine. An operation has two or three of them.
const stepTime = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, newScreen(os.Stdout))
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays the demo. All it makes is in memory and in a directory that it removes.
func run(ctx context.Context, out *screen) (err error) {
	dir, err := os.MkdirTemp("", "metal-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ironic, err := startIronic(ctx)
	if err != nil {
		return err
	}
	defer ironic.stop()
	w, err := newWorkspace(ctx, dir, ironic.url, out)
	if err != nil {
		return err
	}
	return play(ctx, w, ironic, out)
}

// play is the story that the demo tells.
func play(ctx context.Context, w *workspace, ironic *ironic, out *screen) error {
	out.start = time.Now() // to build OpenTofu may have taken minutes
	out.say("Six machines and a fake Ironic at %s, with %s.", ironic.url, w.version)
	out.say("The provider has provisioning_limit = { max_concurrent = 2 }.")

	out.step("Plan: enroll and clean six machines, reserve three of them, deploy an image on these")
	if err := w.plan(ctx); err != nil {
		return err
	}
	out.step("Apply: at most two machines have an operation in progress at once, the others wait")
	if err := w.watch(ctx, ironic, "apply", "saved"); err != nil {
		return err
	}
	out.step("Plan a new image: the plan announces each disk that is wiped")
	if err := w.plan(ctx, "-var=image=debian-13"); err != nil {
		return err
	}
	out.step("Apply it: the machines are rebuilt in place, and the disk of the first one fails")
	if err := w.watchFailure(ctx, ironic, "apply", "saved"); err != nil {
		return err
	}
	out.step("The disk works again: the next plan has only that machine, which stayed reserved")
	if err := w.plan(ctx, "-var=image=debian-13"); err != nil {
		return err
	}
	if err := w.watch(ctx, ironic, "apply", "saved"); err != nil {
		return err
	}
	out.step("Destroy: undeploy, clean, free and remove the machines")
	if err := w.watch(ctx, ironic, "destroy", "-auto-approve"); err != nil {
		return err
	}
	left, err := ironic.left(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("left in Ironic: %s", strings.Join(left, ", "))
	}
	out.step("Nothing is left: Ironic has no node, no port and no allocation")
	return nil
}

// ironic is a fake Ironic in this process.
type ironic struct {
	url    string
	server *http.Server
}

func startIronic(ctx context.Context) (*ironic, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fake := &fakeironic.Server{StepTime: stepTime, Fail: failOnce("rebuild")}
	server := &http.Server{Handler: fake, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with stop
	return &ironic{url: "http://" + listener.Addr().String(), server: server}, nil
}

// diskError is the last_error of the operation that fails.
const diskError = "Deploy step deploy.write_image failed: Error writing image to device /dev/sda: Input/output error"

// failOnce lets the first operation with this verb fail. The fake calls the result for one operation at a time.
func failOnce(failing string) func(node fakeironic.Node, verb string) string {
	failed := false
	return func(_ fakeironic.Node, verb string) string {
		if failed || verb != failing {
			return ""
		}
		failed = true
		return diskError
	}
}

func (i *ironic) stop() { _ = i.server.Close() }

// newWorkspace prepares a directory in which the CLI finds the provider and the configuration.
func newWorkspace(ctx context.Context, dir, endpoint string, out *screen) (*workspace, error) {
	cli, err := output(ctx, "tools/cli")
	if err != nil {
		return nil, err
	}
	w := &workspace{cli: cli, dir: filepath.Join(dir, "work"), out: out, told: map[string]bool{}}
	if _, err := output(ctx, "tools/mirror", filepath.Join(dir, "mirror")); err != nil {
		return nil, err
	}
	if err := os.CopyFS(w.dir, os.DirFS("examples/demo")); err != nil {
		return nil, err
	}
	rc := filepath.Join(dir, "cli.tfrc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(dir, "mirror"))
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		return nil, err
	}
	w.env = append(environment(), "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "METAL_ENDPOINT="+endpoint)
	if err := w.run(ctx, nil, "init"); err != nil {
		return nil, err
	}
	version := exec.CommandContext(ctx, cli, "version")
	version.Env = w.env
	line, err := version.Output()
	w.version, _, _ = strings.Cut(string(line), "\n")
	return w, err
}

// output runs a script of this repository, and returns what it prints.
func output(ctx context.Context, script string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, script, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", script, err)
	}
	return strings.TrimSpace(string(text)), nil
}
