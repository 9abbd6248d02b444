// Command screenshots makes the pictures of metal watch in assets/: it applies a fleet of 40 machines to a fake Ironic, follows the
// apply with metal watch in a terminal, and photographs the terminal and the HTML page with Chromium when the apply is half done.
// Usage: make screenshots. It needs a CLI (see tools/cli) and chromium; Debian has it as a package.
package main

import (
	"bytes"
	"context"
	_ "embed" // the configuration
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

//go:embed fleet.tf
var fleet string

// The demonstration.
const (
	stepTime  = 6 * time.Second // of each transient state
	halfDone  = 18              // machines that are done when the pictures are taken
	columns   = 100
	rows      = 24
	patience  = 10 * time.Minute // for the apply to be half done
	unlucky   = 7                // the deployment with this number fails
	complaint = "Deploy step deploy.write_image failed: no space left on device /dev/sda"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "screenshots.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, root, dir); err != nil {
		return err
	}
	endpoint, closeFake, err := serveFake(ctx)
	if err != nil {
		return err
	}
	defer closeFake()
	screen, err := demonstrate(ctx, root, dir, endpoint)
	if err != nil {
		return err
	}
	return photograph(ctx, dir, filepath.Join(root, "assets"), screen)
}

// build compiles the provider and metal into dir/bin.
func build(ctx context.Context, root, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "bin")+"/", ".", "./cmd/metal")
	cmd.Dir = root
	return quietly(cmd)
}

// serveFake serves a fake Ironic on its usual port if that is free. One deployment fails.
func serveFake(ctx context.Context) (endpoint string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:6385")
	if err != nil {
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", nil, err
	}
	deployments := 0
	fake := &fakeironic.Server{StepTime: stepTime, Fail: func(_ fakeironic.Node, verb string) string { // called by one goroutine at a time
		if verb == "active" {
			deployments++
		}
		if verb == "active" && deployments == unlucky {
			return complaint
		}
		return ""
	}}
	server := &http.Server{Handler: fake, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// demonstrate applies the fleet until it is half done, and returns the frame that metal watch shows by then. dir/page.html is the page.
func demonstrate(ctx context.Context, root, dir, endpoint string) (frame string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := exec.CommandContext(ctx, filepath.Join(root, "tools", "cli"), os.Getenv("CLI"))
	cli, err := found.Output()
	if err != nil {
		return "", fmt.Errorf("tools/cli: %w", err)
	}
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides { \"terraform-provider-metal/metal\" = %q }\n  direct {}\n}\n",
		filepath.Join(dir, "bin"))
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "rc"), []byte(rc), 0o600), os.WriteFile(filepath.Join(dir, "main.tf"),
		[]byte(fleet), 0o600)); err != nil {
		return "", err
	}
	environment := append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "rc"), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"METAL_ENDPOINT="+endpoint, "TERM=xterm", "NO_COLOR=")

	apply := exec.CommandContext(ctx, strings.TrimSpace(string(cli)), "apply", "-auto-approve", "-no-color", "-parallelism=40")
	apply.Dir, apply.Env = dir, environment
	apply.Cancel = func() error { return apply.Process.Signal(os.Interrupt) }
	watch := exec.CommandContext(ctx, filepath.Join(dir, "bin", "metal"), "watch", "--goal", "active", "--resource-class", "baremetal",
		"--total", "40", "--poll-interval", "2s", "--html", filepath.Join(dir, "page.html"))
	watch.Env = environment
	terminal, err := pty.StartWithSize(watch, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		return "", err
	}
	var shown output
	go func() { _, _ = io.Copy(&shown, terminal) }() // ends with the program
	if err := apply.Start(); err != nil {
		return "", err
	}
	defer func() {
		cancel()
		_ = apply.Wait() // interrupted
		_ = watch.Wait() // killed
		_ = terminal.Close()
	}()
	for {
		if frame := lastFrame(shown.String()); isHalfDone(frame) {
			return frame, keep(filepath.Join(dir, "page.html"))
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the apply was not half done in time: %w; the last frame was:\n%s", ctx.Err(), lastFrame(shown.String()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// output is what a program has written to its terminal.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what the program writes.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var donePattern = regexp.MustCompile(`(?s)(\d+) of 40 done, 5 in progress[^\n]* 1 failed.*deploying\S* +[2-9]s`)

// isHalfDone reports whether a frame shows enough: machines that are done, in progress and failed.
func isHalfDone(frame string) bool {
	found := donePattern.FindStringSubmatch(frame)
	if found == nil {
		return false
	}
	done, err := strconv.Atoi(found[1])
	return err == nil && done >= halfDone
}

// keep copies the page, which the end of metal watch overwrites, to page.html.kept.
func keep(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page+".kept.html", text, 0o600)
}

// photograph makes the pictures.
func photograph(ctx context.Context, dir, assets string, frame string) error {
	var page bytes.Buffer
	if err := terminalPage.Execute(&page, template.HTML(paint(frame))); err != nil { //nolint:gosec // paint escapes
		return err
	}
	terminal := filepath.Join(dir, "terminal.html")
	if err := errors.Join(os.MkdirAll(assets, 0o750), os.WriteFile(terminal, page.Bytes(), 0o600)); err != nil {
		return err
	}
	for _, picture := range []struct{ name, page, size string }{
		{"watch-terminal.png", terminal, "900,480"},
		{"watch-page.png", filepath.Join(dir, "page.html.kept.html"), "1100,1060"},
	} {
		file := filepath.Join(assets, picture.name)
		err := quietly(exec.CommandContext(ctx, "chromium",
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars",
			"--user-data-dir="+filepath.Join(dir, "chromium-"+picture.name), "--window-size="+picture.size, "--screenshot="+file,
			"file://"+picture.page))
		if err != nil {
			return err
		}
		fmt.Println(file)
	}
	return nil
}

// quietly runs a program, and shows what it says only if it fails.
func quietly(cmd *exec.Cmd) error {
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, said)
	}
	return nil
}
