package main

import (
	"context"
	"errors"
	"flag"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

const aboutMigrate = `metal-oneview migrate moves nodes from pre-allocation, where a server profile is on the hardware all the time, to dynamic
allocation, where a node has one only while it needs it.

  deployed  A node with an instance is told in driver_info which profile it has (applied_server_profile_uri), and that its
            allocation is dynamic. Nothing else happens to it.
  idle      An idle node is put into maintenance with the reason "Migrating to dynamic allocation". Its server is switched
            off and its profile deleted, if that is provably its own: Ironic names it as applied, it carries the mark of this
            program, or it is a temporary one. Then the node comes out of maintenance. Maintenance that somebody has set
            stays as it is.

Of a profile that nothing proves to be the node's own, it cannot be told from here whether it was made for the node in
advance, or by a OneView user who needs it. Such nodes are left as they are, which the log says. If you know that these
profiles were made in advance, give -release-unknown: it deletes them too, except from servers that are on, and from nodes
that sync has found in use by OneView.

Nodes are migrated from the states enroll, manageable, available, active, inspect failed, clean failed and error. Run it
again for those that were in others, and after an interruption: it goes on where it was, also where Ironic's former tool
(ironic-oneview migrate-to-dynamic) was.

Every change is a line on standard output; -dry-run prints the same lines and does nothing.

  metal-oneview migrate -all -dry-run               show what would be done (exit code 4: something)
  metal-oneview migrate -nodes rack1-01,rack1-02    these two, by name or UUID
  metal-oneview migrate -all                        every node that is not migrated yet
`

// migrate runs the command migrate.
func (c *command) migrate(ctx context.Context, args []string) int {
	var s settings
	flags := flag.NewFlagSet("metal-oneview migrate", flag.ContinueOnError)
	all := flags.Bool("all", false, "migrate every node that is pre-allocated")
	nodes := flags.String("nodes", "", "migrate these: a `list` of UUIDs or names with commas between them")
	unknown := flags.Bool("release-unknown", false, "also delete profiles of idle nodes that nothing proves to be their own; read above first")
	dryRun := flags.Bool("dry-run", false, "show what would be done, and do nothing")
	parallel := flags.Int("parallel", oneview.DefaultParallel, "`nodes` that are worked on at once")
	w, code, done := c.begin(flags, aboutMigrate, &s, args)
	if done {
		return code
	}
	var refs []string
	for ref := range strings.SplitSeq(*nodes, ",") {
		if ref = strings.TrimSpace(ref); ref != "" {
			refs = append(refs, ref)
		}
	}
	err := positive("parallel", *parallel)
	if *all == (len(refs) > 0) {
		err = errors.Join(err, errors.New("give either -all or -nodes"))
	}
	if err != nil {
		return c.misused(err)
	}
	defer w.closePool(ctx)
	w.lines = true
	options := oneview.MigrateOptions{
		All: *all, Nodes: refs, ReleaseUnknown: *unknown, DryRun: *dryRun, Parallel: *parallel, Report: w.report, Progress: w.progress,
	}
	start := time.Now()
	summary, err := w.pool.Migrate(ctx, options)
	attributes := []any{
		"nodes", summary.Nodes, changedKey(*dryRun), summary.Changed, "warnings", summary.Warned, "skipped", summary.Skipped, "failed", summary.Failed,
		"took", time.Since(start).Round(time.Millisecond),
	}
	switch {
	case ctx.Err() != nil:
		w.log.WarnContext(ctx, "stopped; run it again to go on", attributes...)
	case err != nil:
		w.log.ErrorContext(ctx, "migration failed", append(attributes, "error", err)...)
	case *dryRun:
		w.log.InfoContext(ctx, "dry run: nothing was changed", attributes...)
	default:
		w.log.InfoContext(ctx, "migration done", attributes...)
	}
	code = exitCode(err, summary.Tally, *dryRun)
	if code == exitDone && summary.Skipped > 0 {
		return exitNodesFailed // unlike a pass of sync, nothing comes back to them by itself
	}
	return code
}
