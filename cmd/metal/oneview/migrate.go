package oneview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

const aboutMigrate = `metal oneview migrate moves nodes from pre-allocation to dynamic allocation. With pre-allocation, the hardware always
has a server profile. With dynamic allocation, a node has a profile only while it needs one.

  deployed  For a node with an instance, the command writes applied_server_profile_uri and dynamic_allocation = true
            into driver_info. It changes nothing else.
  idle      The command puts an idle node into maintenance with the reason "Migrating to dynamic allocation". If the
            profile was provably made for the node, it switches the server off and deletes the profile. Proof is one of:
            applied_server_profile_uri names the profile, the profile has the mark of this program, or it is a temporary
            profile. Then the command ends the maintenance. Maintenance with another reason stays as it is.

Without proof, the command cannot know whether an operator made the profile in advance, or a OneView user needs it. It
does not change such a node, and reports an error for it. If you know that the profile was made in advance, add
--release-unknown: the command then deletes it too, unless the server is on, or sync has found it in use by OneView.

The command migrates nodes in the states enroll, manageable, available, active, inspect failed, clean failed and error.
Run it again for nodes that were in other states, and after an interruption: it continues, also the unfinished work of
Ironic's former tool (ironic-oneview migrate-to-dynamic).

The command writes a line to standard output for every change. --dry-run writes the same lines and changes nothing.

  metal oneview migrate --all --dry-run     show the changes (exit code 4: there are some)
  metal oneview migrate rack1-01 rack1-02   two nodes, by name or UUID
  metal oneview migrate --all               every node that is not migrated yet`

func newMigrate(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "migrate [NODE...]", Short: "Move nodes from pre-allocation to dynamic allocation", Long: aboutMigrate}
	var o sharing.MigrateOptions
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&o.All, "all", false, "migrate every node that is pre-allocated")
	flags.BoolVar(&o.ReleaseUnknown, "release-unknown", false, "also delete profiles of idle nodes without proof that they were made for "+
		"the node; see above")
	flags.BoolVar(&o.DryRun, "dry-run", false, "show the changes without making them")
	flags.IntVar(&o.Parallel, "parallel", sharing.DefaultParallel, "`number` of nodes to migrate at once")
	cli.DurationVar(flags, &o.Limit, "timeout", sharing.DefaultLimit, "time-out: `time` for removing one server profile")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Nodes = args
		wrong := errors.Join(cli.Positive("parallel", o.Parallel), cli.Positive("timeout", o.Limit))
		if o.All == (len(o.Nodes) > 0) || slices.Contains(o.Nodes, "") {
			wrong = errors.Join(wrong, errors.New("name nodes, or set --all"))
		}
		if wrong != nil {
			return wrong
		}
		p, err := open(s, cmd, false)
		if err != nil {
			return err
		}
		defer p.close()
		return p.migrate(cmd.Context(), o)
	}
	return cmd
}

func (p *pool) migrate(ctx context.Context, o sharing.MigrateOptions) error {
	start := time.Now()
	o.Report, o.Progress = p.report, p.progress
	summary, err := p.Migrate(ctx, o)
	if err != nil {
		return stopped(ctx, fmt.Errorf("the migration failed: %w", err))
	}
	if o.All && summary.Nodes == 0 && summary.Failed == 0 {
		if err := p.requireHardware(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.stderr, "%s to migrate; %s; took %s\n",
		words.Count(summary.Nodes, "node"), tallyText(summary.Tally, o.DryRun), time.Since(start).Round(time.Millisecond))
	if err := outcome(summary.Tally, o.DryRun); err != nil || summary.Skipped == 0 {
		return err
	}
	return &cli.Failure{Code: cli.ExitNodesFailed} // unlike sync, no later pass handles the skipped nodes
}
