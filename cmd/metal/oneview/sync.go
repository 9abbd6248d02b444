package oneview

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const aboutSync = `metal oneview sync checks who uses the server hardware, and updates the nodes in Ironic. It makes a pass every
--interval until it is stopped.

A pass checks the nodes that share their hardware (metal oneview --help) and are available, manageable, clean
failed or deploy failed:

  taken     A OneView user has taken the server of an available node, or of a node whose cleaning failed for that
            reason. The pass puts the node into maintenance with the reason "node in use by OneView", and makes it
            manageable, so that Ironic does not allocate it.
  freed     The server of such a node is free again. The pass ends the maintenance and sends provide, which cleans the
            node. It only reports a node whose driver_info does not show that a pass or an apply has set that reason.
            For the cleaning, the pass applies a temporary server profile from server_profile_template_uri in the node's
            capabilities; the first pass after the cleaning removes the profile. Without that capability, the pass does
            not change the node. While a node waits for a slot of the provisioning limit, it stays in maintenance.
  conflict  The deployment of a node has failed, and a OneView user has its server. The pass reports the node and does not
            change it. Do not undeploy the node before the user frees the server: Ironic would erase it.
  left over An interrupted run has left a temporary profile on hardware. The pass removes it, unless a cleaning or
            inspection uses it.

A pass never changes maintenance with another reason, a profile of a OneView user, or the power of a server with such a
profile. If Ironic has an operation in progress on a node, the next pass handles the node. If a node fails, the pass
continues with the others. You can stop or kill the program at any moment: the next pass finishes the work.

With --once or --dry-run the command writes a line to standard output for every change. Without them it is a service: it
logs to standard error, and continues after a pass that fails.

  metal oneview sync --dry-run           show the changes (exit code 4: there are some)
  metal oneview sync --once              make one pass, for example from cron
  metal oneview sync --log-format json   run as a service; SIGTERM or Ctrl-C stops it`

// syncFlags are the flags of metal oneview sync that are not in sharing.SyncOptions.
type syncFlags struct {
	interval time.Duration
	once     bool
	limit    throttle.Limit
}

func newSync(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "sync", Short: "Take nodes out of service whose servers OneView users have taken, and return them " +
		"when freed", Long: aboutSync, Args: cli.OnlyFlags}
	var own syncFlags
	var o sharing.SyncOptions
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.DurationVar(flags, &own.interval, "interval", sharing.DefaultBudget, "`time` between the starts of two passes; after this time "+
		"a pass starts no long operation")
	cli.FromEnvironment(flags, "interval", "ONEVIEW_SYNC_INTERVAL")
	flags.BoolVar(&own.once, "once", false, "make one pass")
	flags.BoolVar(&o.DryRun, "dry-run", false, "make one pass that shows the changes without making them")
	flags.IntVar(&o.Parallel, "parallel", sharing.DefaultParallel, "`number` of nodes to handle at once")
	cli.DurationVar(flags, &o.Limit, "timeout", sharing.DefaultLimit, "time-out: `time` for applying or removing one temporary "+
		"server profile")
	cli.DurationVar(flags, &o.LeftoverAge, "leftover-after", sharing.DefaultLeftoverAge,
		"`age` from which a temporary profile counts as left over, if the state of its node does not say whether it is")
	cli.LimitFlags(flags, &own.limit)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return own.run(cmd, s, o) }
	return cmd
}

// run makes one pass, or passes until it is stopped.
func (f *syncFlags) run(cmd *cobra.Command, s *cli.Settings, o sharing.SyncOptions) error {
	if err := errors.Join(cli.ReadEnvironment(cmd.Flags(), s.Getenv), f.check(o)); err != nil {
		return err
	}
	s.Ironic.Limit = f.limit
	service := !f.once && !o.DryRun
	p, err := open(s, cmd, service)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	defer p.close()
	o.Budget, o.Report, o.Progress = f.interval, p.report, p.progress
	if service {
		return p.serve(ctx, o)
	}
	return p.syncOnce(ctx, o)
}

func (f *syncFlags) check(o sharing.SyncOptions) error {
	return errors.Join(cli.Positive("interval", f.interval), cli.Positive("parallel", o.Parallel), cli.Positive("timeout", o.Limit),
		cli.Positive("leftover-after", o.LeftoverAge), cli.CheckLimit(f.limit))
}

func (p *pool) syncOnce(ctx context.Context, o sharing.SyncOptions) error {
	start := time.Now()
	summary, err := p.Sync(ctx, o)
	if err != nil {
		return stopped(ctx, fmt.Errorf("the pass failed: %w", err))
	}
	if foundNoNode(summary) {
		if err := p.requireHardware(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.stderr, "%s checked, %d in use by OneView, %d not checked because they are pre-allocated; %s; took %s\n",
		words.Count(summary.Nodes, "node"), summary.InUse, summary.PreAllocated, tallyText(summary.Tally, o.DryRun),
		time.Since(start).Round(time.Millisecond))
	return outcome(summary.Tally, o.DryRun)
}

// foundNoNode reports whether a pass has found no node that concerns it.
func foundNoNode(summary sharing.SyncSummary) bool {
	return summary.Nodes == 0 && summary.PreAllocated == 0 && summary.Tally == sharing.Tally{}
}

// serve makes a pass every interval until ctx is done. It logs a pass that fails, and continues with the next one.
func (p *pool) serve(ctx context.Context, o sharing.SyncOptions) error {
	p.log.InfoContext(ctx, "started", "version", p.version, "interval", o.Budget)
	for {
		next := time.NewTimer(o.Budget)
		p.logPass(ctx, o)
		select {
		case <-ctx.Done():
			next.Stop()
			p.log.InfoContext(ctx, "stopped")
			return nil
		case <-next.C:
		}
	}
}

func (p *pool) logPass(ctx context.Context, o sharing.SyncOptions) {
	start := time.Now()
	p.told = start
	summary, err := p.Sync(ctx, o)
	attributes := []any{
		"nodes", summary.Nodes, "in_use", summary.InUse, "pre_allocated", summary.PreAllocated, "changed", summary.Changed,
		"warnings", summary.Warned, "skipped", summary.Skipped, "failed", summary.Failed, "took", time.Since(start).Round(time.Millisecond),
	}
	switch {
	case ctx.Err() != nil:
		p.log.InfoContext(ctx, "pass stopped", attributes...)
		return
	case err != nil:
		p.log.ErrorContext(ctx, "pass failed", append(attributes, "error", err)...)
		return
	}
	p.log.InfoContext(ctx, "pass done", attributes...)
	if foundNoNode(summary) {
		if err := p.requireHardware(ctx); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, err.Error())
		}
	}
}
