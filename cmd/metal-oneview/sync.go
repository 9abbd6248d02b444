package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

const aboutSync = `metal-oneview sync brings Ironic into line with who uses the server hardware, every -interval until it is stopped.

One pass looks at the nodes that are available, manageable or clean failed and share their hardware (metal-oneview -h):

  taken     An available node whose server a OneView user has taken is put into maintenance with the reason
            "node in use by OneView", and made manageable, so that nobody gets it. So is a node whose cleaning failed
            because its server was taken.
  freed     A node with that reason whose server was freed comes out of maintenance and is provided, which cleans it. The
            cleaning gets a temporary server profile, made from server_profile_template_uri in the node's capabilities,
            which the pass after it removes; without that capability the node stays as it is. Nodes wait for their turn in
            the provisioning limit, and stay in maintenance while they do.
  left over Temporary profiles that an interrupted run has left on hardware that nothing cleans or inspects are removed.

Maintenance with any other reason is never touched, and neither is a profile of a OneView user, nor the power of a server
that has one. A node that Ironic is at work on waits for the next pass; one that cannot be worked on stops no other. The
program may be stopped or killed at any moment: the next pass finishes what was begun.

With -once or -dry-run every change is a line on standard output; otherwise it is in the log.

  metal-oneview sync -dry-run          show what would be done (exit code 4: something)
  metal-oneview sync -once             one pass, as from cron
  metal-oneview sync -log-format json  as a service; SIGTERM or Ctrl-C stops it
`

// sync runs the command sync.
func (c *command) sync(ctx context.Context, args []string) int {
	var s settings
	flags := flag.NewFlagSet("metal-oneview sync", flag.ContinueOnError)
	interval := durationFlag(flags, "interval", oneview.DefaultBudget, "`time` between the beginnings of two passes; a pass begins no long work after it")
	once := flags.Bool("once", false, "make one pass")
	dryRun := flags.Bool("dry-run", false, "make one pass that shows what would be done, and does nothing")
	parallel := flags.Int("parallel", oneview.DefaultParallel, "`nodes` that are worked on at once")
	leftover := durationFlag(flags, "leftover-after", oneview.DefaultLeftoverAge, "`age` at which a temporary profile is left over where the state of its node does not tell")
	flags.IntVar(&s.maxHosts, "max-hosts", defaultMaxHosts, "provisioning limit: how many `hosts` of the site are in work at once, others' included (MAX_CONCURRENT_PROVISIONING_HOSTS); 0: no limit")
	w, code, done := c.begin(flags, aboutSync, &s, args)
	if done {
		return code
	}
	wrong := errors.Join(positive("interval", *interval), positive("parallel", *parallel), positive("leftover-after", *leftover))
	if s.maxHosts < 0 {
		wrong = errors.Join(wrong, errors.New("-max-hosts must not be less than 0"))
	}
	if wrong != nil {
		return c.misused(wrong)
	}
	defer w.closePool(ctx)
	w.lines = *once || *dryRun
	options := oneview.SyncOptions{
		DryRun: *dryRun, Parallel: *parallel, Budget: *interval, LeftoverAge: *leftover, Report: w.report, Progress: w.progress,
	}
	if w.lines {
		summary, err := w.pass(ctx, options)
		return exitCode(err, summary.Tally, *dryRun)
	}
	return w.serve(ctx, options, *interval)
}

// serve makes passes until ctx is done. A pass that fails is logged, and the next one tries again.
func (w *work) serve(ctx context.Context, options oneview.SyncOptions, interval time.Duration) int {
	w.log.InfoContext(ctx, "started", "version", version, "interval", interval)
	for {
		next := time.NewTimer(interval)
		_, _ = w.pass(ctx, options) // which logs
		select {
		case <-ctx.Done():
			next.Stop()
			w.log.InfoContext(ctx, "stopped")
			return exitDone
		case <-next.C:
		}
	}
}

// pass makes one pass and logs how it went.
func (w *work) pass(ctx context.Context, options oneview.SyncOptions) (oneview.SyncSummary, error) {
	start := time.Now()
	w.told = start
	summary, err := w.pool.Sync(ctx, options)
	attributes := []any{
		"nodes", summary.Nodes, "in_use", summary.InUse, "pre_allocated", summary.PreAllocated, changedKey(options.DryRun), summary.Changed,
		"warnings", summary.Warned, "skipped", summary.Skipped, "failed", summary.Failed, "took", time.Since(start).Round(time.Millisecond),
	}
	switch {
	case ctx.Err() != nil:
		w.log.InfoContext(ctx, "pass stopped", attributes...)
	case err != nil:
		w.log.ErrorContext(ctx, "pass failed", append(attributes, "error", err)...)
	case options.DryRun:
		w.log.InfoContext(ctx, "dry run: nothing was changed", attributes...)
	default:
		w.log.InfoContext(ctx, "pass done", attributes...)
	}
	return summary, err
}
