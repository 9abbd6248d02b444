package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const aboutRelease = `metal release gives up allocations, as destroying a metal_allocation does: their nodes are free for others. An allocation on
whose node something is deployed is refused; use metal undeploy --release for it.

With --node, it gives up the reservation of a node, also one without an allocation, which a metal_deployment makes that names
its node. An apply that was killed may leave both; the command names the run. Do not release what an apply at work needs.

If a configuration has the allocation, its next plan reserves a node again.

  metal release web-3 web-4
  metal release --node rack1-07`

type releaseFlags struct {
	nodes, yesErase []string
	file, output    string
	dryRun, yes     bool
	limit           throttle.Limit // to end a quarantine, which cleans a machine
}

func newRelease(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release [ALLOCATION...]", Short: "Give up allocations and reservations of machines", Long: aboutRelease,
		Args: cobra.ArbitraryArgs,
	}
	f := &releaseFlags{}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.nodes, "node", nil, "`names` or UUIDs of nodes whose reservation is given up")
	flags.StringVar(&f.file, "file", "", "`file` with names or UUIDs of allocations, one a line; # begins a comment; - is standard input")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would happen, and send nothing that changes anything")
	flags.BoolVar(&f.yes, "yes", false, "go on without a question, except where --yes-erase is needed")
	flags.StringSliceVar(&f.yesErase, "yes-erase", nil, "`names` or UUIDs of nodes that another client has reserved, on which a run may "+
		"be at work, or whose disks may be erased to end a quarantine")
	flags.StringVar(&f.output, "output", "table", "`format` on standard output: table, or json")
	cli.Section(flags, limitTitle, func() { cli.LimitFlags(flags, &f.limit) })
	flags.AddFlagSet(s.OneViewFlags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args) }
	return cmd
}

// released is a reservation with what becomes of it.
type released struct {
	operate.Reservation
	ref     string
	byNode  bool
	plan    operate.Plan
	outcome operate.Outcome
	err     error
}

func (f *releaseFlags) run(cmd *cobra.Command, s *cli.Settings, args []string) error {
	all, err := f.named(cmd, args)
	if err := errors.Join(err, cli.ReadEnvironment(cmd.Flags(), s.Getenv), checkErase(f.yesErase), cli.CheckLimit(f.limit)); err != nil {
		return err
	}
	s.Ironic.Limit = f.limit
	site, _, done, err := s.OpenSite(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	if err := findAll(ctx, s, site, all); err != nil {
		return err
	}
	if !f.dryRun {
		if err := f.confirm(cmd, all); err != nil {
			return err
		}
		to := newProgress(cmd, "release", len(all))
		for i := range all {
			all[i].release(ctx, site)
			to.ends(all[i].Label(), all[i].outcome)
		}
		to.clear()
	}
	outcomes := make([]operate.Outcome, len(all))
	for i := range all {
		outcomes[i] = all[i].outcome
	}
	return errors.Join(writeReleased(cmd.OutOrStdout(), f.output, all), failureOf(ctx, "reservation", outcomes))
}

func (f *releaseFlags) named(cmd *cobra.Command, args []string) (all []released, err error) {
	err = cli.CheckOutput(f.output)
	refs := slices.Clone(args)
	if f.file != "" {
		more, wrong := cli.ReadNames(cmd, f.file)
		refs, err = append(refs, more...), errors.Join(err, wrong)
	}
	for _, ref := range refs {
		all = append(all, released{ref: ref})
	}
	for _, ref := range f.nodes {
		all = append(all, released{ref: ref, byNode: true})
	}
	switch {
	case slices.ContainsFunc(all, func(r released) bool { return r.ref == "" }):
		err = errors.Join(err, errors.New("the name of an allocation or a node is empty"))
	case len(all) == 0 && err == nil:
		err = fmt.Errorf("%s needs names or UUIDs of allocations, or --node", cmd.CommandPath())
	}
	return all, err
}

// find reads the reservation and decides what giving it up does.
func (r *released) find(ctx context.Context, from operate.Reader) (err error) {
	if r.byNode {
		r.Reservation, err = operate.FindReservation(ctx, from, r.ref)
	} else {
		r.Reservation, err = operate.FindAllocation(ctx, from, r.ref)
	}
	if err != nil {
		return err
	}
	switch r.plan, r.outcome = operate.DecideRelease(r.Reservation), operate.Planned; {
	case r.plan.Refused != "":
		r.outcome, r.err = operate.Refused, machine.RefusedFor(r.Node, r.plan.Refused)
	case r.plan.Nothing:
		r.outcome = operate.Unchanged
	}
	return nil
}

func (r *released) names() string {
	if r.byNode {
		return "node " + r.ref
	}
	return "allocation " + r.ref
}

// findAll reads all reservations before anything is changed.
func findAll(ctx context.Context, s *cli.Settings, site *machine.Site, all []released) error {
	from, err := operate.ReaderOf(ctx, site.Ironic, len(all))
	if err != nil {
		return s.Unread("the reservations", err)
	}
	var missing []string
	for i := range all {
		err := all[i].find(ctx, from)
		if api.IsNotFound(err) {
			missing = append(missing, all[i].names())
		} else if err != nil {
			return s.Unread(all[i].names(), err)
		}
	}
	if len(missing) > 0 {
		return &cli.Failure{Code: cli.ExitNothing, Err: fmt.Errorf("%s has no %s that you may see. For the reservation of a node, use "+
			"--node NODE", s.IronicName(), strings.Join(missing, ", "))}
	}
	return nil
}

// release gives the reservation up, if that still is what was confirmed.
func (r *released) release(ctx context.Context, site *machine.Site) {
	switch {
	case r.outcome != operate.Planned:
		return // so no question was asked
	case ctx.Err() != nil:
		r.outcome = operate.NotBegun
		return
	}
	confirmed, had := r.plan, r.Reservation
	switch err := r.find(ctx, site.Ironic); {
	case api.IsNotFound(err):
		r.outcome = operate.Unchanged // another client has given it up
	case ctx.Err() != nil:
		r.outcome = operate.NotBegun
	case err != nil:
		r.outcome, r.err = operate.Failed, err
	case r.outcome != operate.Planned:
	case !r.Is(had):
		r.outcome, r.err = operate.Refused, fmt.Errorf("%s is not what was confirmed: another client has changed it meanwhile. Run the "+
			"command again", r.Label())
	case r.plan.Harm > confirmed.Harm:
		r.outcome, r.err = operate.Refused, machine.RefusedFor(r.Node, "it has changed since the command began, and the command "+
			r.plan.Does+" now. Run the command again")
	default:
		switch r.err = operate.Release(ctx, site, r.Reservation); {
		case r.err == nil:
			r.outcome = operate.Done
		case failure.IsInterrupted(r.err):
			r.outcome = operate.Interrupted
		case failure.Is(r.err, machine.KindRefused):
			r.outcome = operate.Refused
		default:
			r.outcome = operate.Failed
		}
	}
}

// confirm asks what must be asked before reservations are given up.
func (f *releaseFlags) confirm(cmd *cobra.Command, all []released) error {
	var questions []question
	for _, r := range all {
		if r.outcome == operate.Planned {
			questions = append(questions, question{r.Label(), r.plan, r.Node})
		}
	}
	return confirmation{f.yes, f.yesErase}.ask(cmd, "reservation", questions)
}

// writeReleased writes what became of the reservations: a line each, or a JSON array.
func writeReleased(to io.Writer, format string, all []released) error {
	type line struct {
		AllocationID   string          `json:"allocation_id,omitempty"`
		AllocationName string          `json:"allocation_name,omitempty"`
		NodeID         string          `json:"node_id,omitempty"`
		NodeName       string          `json:"node_name,omitempty"`
		Outcome        operate.Outcome `json:"outcome"`
		Does           string          `json:"does"`
		Error          string          `json:"error,omitempty"`
	}
	lines := make([]line, len(all))
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESERVATION\tRESULT\tDETAILS")
	for i, r := range all {
		l := line{Outcome: r.outcome, Does: r.plan.Does}
		if r.Allocation != nil {
			l.AllocationID, l.AllocationName = r.Allocation.UUID, r.Allocation.Name
		}
		if r.Node != nil {
			l.NodeID, l.NodeName = r.Node.UUID, r.Node.Name
		}
		details := l.Does
		if r.err != nil {
			_, l.Error = failure.ExplainAction("", r.Node, r.err, "")
			details = l.Error
		}
		lines[i] = l
		fmt.Fprintf(table, "%s\t%s\t%s\n", rest.OneLine(r.Label()), r.outcome, rest.OneLine(details))
	}
	if format == "json" {
		return rest.WriteJSON(to, lines)
	}
	return table.Flush()
}
