// Command fakeironic serves a fake Ironic for demonstrations and try-outs. Its first line of output is its URL.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func main() {
	os.Exit(fakehttp.Main(context.Background(), "fakeironic", func(ctx context.Context, args []string) error {
		return run(ctx, args, os.Stdout, os.Stderr)
	}))
}

// run serves until ctx or the time of -serve-for ends. It writes the URL to stdout, and the rest to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := readOptions(args, stderr)
	if err != nil {
		return err
	}
	fake, notes, err := o.server()
	if err != nil {
		return err
	}
	tell(stderr, notes)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("-listen %s: %w", o.listen, err)
	}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	serving := ctx
	if o.serveFor > 0 {
		limited, cancel := context.WithTimeout(ctx, o.serveFor)
		defer cancel()
		serving = limited
	}
	err = fakehttp.Serve(serving, fake, listener)
	if err == nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(stderr, "fakeironic: ended after %s, as -serve-for says; its machines are gone\n", o.serveFor)
	}
	return err
}

// mostNotes is how many notes are printed. A seed of a large site may have a note for each node.
const mostNotes = 20

func tell(stderr io.Writer, notes []string) {
	for i, note := range notes {
		if i == mostNotes {
			_, _ = fmt.Fprintf(stderr, "fakeironic: ... and %d more of these\n", len(notes)-mostNotes)
			return
		}
		_, _ = fmt.Fprintf(stderr, "fakeironic: %s\n", note)
	}
}

// server returns the fake that the options describe, and notes on its seed.
func (o *options) server() (fake *fakeironic.Server, notes []string, err error) {
	fake = &fakeironic.Server{
		Username: o.username, Password: o.password, MaxMicroversion: o.maxMicroversion,
		Discovery: o.discover > 0 || o.agents, FastTrack: o.agents, DiscoveryKeepsPower: o.agents,
		Answers: o.bmcs.answers,
		Fail:    func(n fakeironic.Node, verb string) string { return o.failures.fail(n, verb, o.legacy()) },
	}
	if notes, err = o.addSeed(fake); err != nil {
		return nil, nil, err
	}
	fake.AddFleet(o.nodes, o.class)
	o.discoverMachines(fake)
	fake.StepTime = o.stepTime
	return fake, notes, nil
}

// discoverMachines adds the machines of -discover, which a plan finds at once: they were discovered a minute ago.
func (o *options) discoverMachines(fake *fakeironic.Server) {
	before := time.Now().Add(-time.Minute).UTC().Format("2006-01-02T15:04:05+00:00")
	for n := range o.discover {
		node := fake.Discover(fakeironic.SampleInventory(n))
		fake.Set(node, "created_at", before)
		fake.Set(node, "updated_at", before)
	}
}
