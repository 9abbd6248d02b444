// Command bench measures what the provider costs, and prints tables in Markdown: requests a machine, times, plans of many
// hosts, memory, and lost records. It runs a real CLI and the provider's binary, in the directory of this module (make bench).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// What -only can name.
const (
	requests = "requests"
	times    = "time"
	plans    = "plan"
	memory   = "memory"
	lost     = "lost"
)

var measurements = []string{requests, times, plans, memory, lost}

// mostHosts is the largest number of hosts: two bytes of their MAC addresses count them.
const mostHosts = 1 << 16

// bench is one run of this program.
type bench struct {
	machines, repeat int
	poll             time.Duration
	planHosts        int
	memoryHosts      int
	lostMachines     int

	root, dir, cli string
	provider       string // directory of the provider's binary
	log            io.Writer
}

// printer writes a part of the result.
type printer func(format string, args ...any)

// say tells what is being done.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.log, "bench: "+format+"\n", args...)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	b := &bench{log: stderr}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "measure one thing: "+strings.Join(measurements, ", ")+"; default: all")
	provider := flags.String("provider", "", "directory with the terraform-provider-metal to measure, such as an older one; "+
		"default: it is built")
	limit := flags.Duration("timeout", time.Hour, "how long all of it may take")
	flags.IntVar(&b.machines, "machines", 60, "machines whose requests and times are measured")
	flags.DurationVar(&b.poll, "poll", 0, "poll_interval of requests and time; default: the provider's")
	flags.IntVar(&b.planHosts, "plan-hosts", 1000, "hosts whose plan is measured")
	flags.IntVar(&b.repeat, "repeat", 3, "how often each plan is run")
	flags.IntVar(&b.memoryHosts, "memory-hosts", 5000, "hosts at which memory is measured")
	flags.IntVar(&b.lostMachines, "lost-machines", 500, "machines whose records are lost and restored")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only != "" && !slices.Contains(measurements, *only) {
		return fmt.Errorf("-only=%s: there is no such measurement", *only)
	}
	for _, n := range []int{b.machines, b.repeat, b.planHosts, b.memoryHosts, b.lostMachines} {
		if n < 1 || n > mostHosts {
			return fmt.Errorf("a count of %d is not between 1 and %d", n, mostHosts)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if err := b.prepare(ctx, *provider); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	return b.measure(ctx, *only, func(format string, args ...any) { fmt.Fprintf(stdout, format, args...) })
}

// prepare finds the CLI, and the provider in a directory; without one it builds the provider.
func (b *bench) prepare(ctx context.Context, provider string) (err error) {
	if b.root, err = filepath.Abs(".."); err != nil {
		return err
	}
	if b.cli, err = findCLI(ctx, b.root); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "metal-bench-"); err != nil {
		return err
	}
	if provider != "" {
		b.provider, err = filepath.Abs(provider)
		return err
	}
	b.say("build the provider")
	if b.provider, err = build(ctx, b.root, ".", filepath.Join(b.dir, "provider")); err != nil {
		return errors.Join(err, os.RemoveAll(b.dir))
	}
	return nil
}

// measure measures one thing, or all, and prints each as soon as it is known.
func (b *bench) measure(ctx context.Context, only string, print printer) error {
	wanted := func(name string) bool { return only == "" || only == name }
	if wanted(requests) || wanted(times) {
		measured, err := b.lives(ctx)
		if wanted(requests) {
			printRequests(print, measured)
		}
		if wanted(times) {
			printTimes(print, measured, b.poll)
		}
		if err != nil {
			return err
		}
	}
	if wanted(plans) {
		if err := b.comparePlans(ctx, print); err != nil {
			return err
		}
	}
	if wanted(memory) {
		if err := b.measureMemory(ctx, print); err != nil {
			return err
		}
	}
	if wanted(lost) {
		return b.measureLost(ctx, print)
	}
	return nil
}
