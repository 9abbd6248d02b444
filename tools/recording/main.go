// Command recording runs a command, shows its output, and writes it as an animated SVG:
//
//	go -C tools run ./recording -title 'make demo' -out ../assets/demo.svg ../bin/demo
//
// The command must print whole lines. Colours are those of SGR that tools/demo uses.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("recording", flag.ContinueOnError)
	title := flags.String("title", "", "what the reader would type")
	out := flags.String("out", "", "the SVG file")
	dir := flags.String("dir", "..", "directory in which the command runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return fmt.Errorf("usage: recording -title TEXT -out FILE COMMAND [ARG...]")
	}
	lines, err := record(ctx, *dir, flags.Args())
	if err != nil {
		return err
	}
	return os.WriteFile(*out, []byte(animate(*title, lines)), 0o644) //nolint:gosec // part of the repository
}

// line is a line of output, and when it was printed.
type line struct {
	at   time.Duration
	text string
}

// record runs a command, copies its output to the screen, and returns it.
func record(ctx context.Context, dir string, command []string) ([]line, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the command is the argument
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "CLICOLOR_FORCE=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var lines []line
	start := time.Now()
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		fmt.Println(scanner.Text())
		lines = append(lines, line{time.Since(start), scanner.Text()})
	}
	return lines, cmd.Wait()
}
