package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience is how long a CLI that was interrupted may take to save its state.
const patience = 30 * time.Second

// workspace is a directory with a configuration, in which the CLI runs.
type workspace struct {
	cli, version string
	dir          string
	env          []string
	out          *screen
	told         map[string]bool // titles of the warnings that were shown, without what follows a colon
}

// filter chooses the lines of the CLI's output that are shown. With nil, no line, no warning and no error is.
type filter func(line string) bool

var (
	planned = regexp.MustCompile(`^  # .* (will|must) be |^ +~ (url|rebuilds) |^Plan:`)
	done    = regexp.MustCompile(`^(Apply|Destroy) complete!`)
)

func showPlan(line string) bool   { return planned.MatchString(line) }
func showResult(line string) bool { return done.MatchString(line) }

// plan saves a plan, and shows it.
func (w *workspace) plan(ctx context.Context, args ...string) error {
	args = append([]string{"plan", "-out=saved"}, args...)
	w.out.command(w.cli, args)
	return w.run(ctx, showPlan, args...)
}

// run runs the CLI and shows the chosen lines, each error, and each kind of warning once. If the CLI fails, the error has all that it
// printed.
func (w *workspace) run(ctx context.Context, shown filter, args ...string) error {
	cmd := exec.CommandContext(ctx, w.cli, slices.Insert(args, 1, "-no-color", "-input=false")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	// A Ctrl-C of the terminal must not reach the CLI twice: then it would not save its state.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = patience
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	log := make(chan string, 1)
	go func() { log <- w.show(reader, shown) }()
	err := cmd.Run()
	_ = writer.Close()
	text := <-log
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(w.cli), args[0], err, text)
	}
	return nil
}

// show shows the chosen lines of an output, its warnings and its errors. It returns all of the output.
func (w *workspace) show(output io.Reader, shown filter) string {
	var log strings.Builder
	inMessage := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		line := lines.Text()
		log.WriteString(line + "\n")
		title, _, _ := strings.Cut(strings.TrimPrefix(line, "Warning: "), ":")
		switch {
		case shown == nil:
		case shown(line):
			inMessage = false
			w.out.line(line)
		case strings.HasPrefix(line, "Warning: "):
			inMessage = !w.told[title]
			w.told[title] = true
			if inMessage {
				w.out.line(line)
			}
		case strings.HasPrefix(line, "Error: "):
			inMessage = true
			w.out.line(line)
		case strings.HasPrefix(line, "(and ") || strings.HasPrefix(line, "───"):
			inMessage = false
		case inMessage && line != "" && !strings.HasPrefix(line, "  "): // lines that are indented quote the configuration
			w.out.line("  " + line)
		}
	}
	return log.String()
}

// environment is this process's without what would change the demo.
func environment() []string {
	changing := []string{"TF_", "METAL_", "OS_", "IRONIC_", "ONEVIEW_", "MAX_CONCURRENT_PROVISIONING_HOSTS="}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return slices.ContainsFunc(changing, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
	})
}
