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
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const aboutRelease = `metal release gives up allocations, as destroying a metal_allocation does: their nodes are free for others. An allocation on
whose node something is deployed is refused; use metal undeploy --release for it.

With --node, it gives up the reservation of a node, also one without an allocation, which a metal_deployment makes that names
its node. An apply that was killed may leave both; the command names the run. Do not release what an apply at work needs.

If a configuration has the allocation, its next plan reserves a node again.

  metal release web-3 web-4
  metal release --node rack1-07`

// releaseFlags are the flags of metal release.
type releaseFlags struct {
	nodes, yesErase []string
	file, output    string
	dryRun, yes     bool
	limit           throttle.Limit // to end a quarantine, which cleans a machine
}

// newRelease returns the command metal release.
func newRelease(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "release [ALLOCATION...]", Short: "Give up allocations and reservations of machines", Long: aboutRelease, Args: cobra.ArbitraryArgs}
	f := &releaseFlags{}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.nodes, "node", nil, "`names` or UUIDs of nodes whose reservation is given up")
	flags.StringVar(&f.file, "file", "", "`file` with names or UUIDs of allocations, one a line; # begins a comment; - is standard input")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would happen, and send nothing that changes anything")
	flags.BoolVar(&f.yes, "yes", false, "go on without a question, except where --yes-erase is needed")
	flags.StringSliceVar(&f.yesErase, "yes-erase", nil, "`names` or UUIDs of nodes that another client has reserved, on which a run may be at work, or whose disks may be erased to end a quarantine")
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

// run gives up the reservations.
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
	if f.dryRun {
		return errors.Join(writeReleased(cmd.OutOrStdout(), f.output, all), wouldRelease(all))
	}
	if err := f.confirm(cmd, all); err != nil {
		return err
	}
	failed := 0
	for i := range all {
		if r := &all[i]; ctx.Err() != nil {
			r.outcome = operate.NotBegun
		} else {
			r.release(ctx, site)
		}
		if all[i].outcome != operate.Done && all[i].outcome != operate.Unchanged {
			failed++
		}
	}
	err = writeReleased(cmd.OutOrStdout(), f.output, all)
	if failed > 0 {
		err = errors.Join(err, &cli.Failure{Code: cli.ExitNodesFailed, Err: fmt.Errorf("%s not given up; see above", cli.Count(failed, "reservation"))})
	}
	return err
}

// named returns what the arguments and the flags name.
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
func (r *released) find(ctx context.Context, site *machine.Site) (err error) {
	if r.byNode {
		r.Reservation, err = operate.FindReservation(ctx, site.Ironic, r.ref)
	} else {
		r.Reservation, err = operate.FindAllocation(ctx, site.Ironic, r.ref)
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

// findAll reads all reservations before anything is changed.
func findAll(ctx context.Context, s *cli.Settings, site *machine.Site, all []released) error {
	var missing []string
	for i := range all {
		err := all[i].find(ctx, site)
		if api.IsNotFound(err) {
			missing = append(missing, all[i].ref)
		} else if err != nil {
			_, detail := failure.Explain("", err)
			return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not read %s of %s: %s", all[i].ref, s.IronicName(), detail)}
		}
	}
	if len(missing) > 0 {
		return &cli.Failure{Code: cli.ExitNothing, Err: fmt.Errorf("%s has no %s that you may see", s.IronicName(), strings.Join(missing, ", "))}
	}
	return nil
}

// release gives the reservation up, if that still is what was confirmed.
func (r *released) release(ctx context.Context, site *machine.Site) {
	if r.outcome != operate.Planned {
		return // so nobody was asked
	}
	confirmed, had := r.plan, r.Reservation
	switch err := r.find(ctx, site); {
	case api.IsNotFound(err):
		r.outcome = operate.Unchanged // another client has given it up
	case err != nil:
		r.outcome, r.err = operate.Failed, err
	case r.outcome != operate.Planned:
	case !r.Is(had):
		r.outcome, r.err = operate.Refused, fmt.Errorf("%s is not what was confirmed: another client has changed it meanwhile. Run the command again", r.Label())
	case r.plan.Harm > confirmed.Harm:
		r.outcome, r.err = operate.Refused, machine.RefusedFor(r.Node, "it has changed since the command began, and the command "+r.plan.Does+" now. Run the command again")
	default:
		if r.outcome, r.err = operate.Done, operate.Release(ctx, site, r.Reservation); r.err != nil {
			r.outcome = operate.Failed
		}
	}
}

// confirm asks what must be asked before reservations are given up.
func (f *releaseFlags) confirm(cmd *cobra.Command, all []released) error {
	ask := cli.NewAsker(cmd)
	var asked []string
	for _, r := range all {
		if r.outcome != operate.Planned {
			continue
		}
		if node := r.Node; r.plan.Harm >= operate.Cuts {
			if isNamed(f.yesErase, node) {
				continue
			}
			if err := typeName(ask, operate.Operation{Command: "release"}, node, r.plan); err != nil {
				return err
			}
			continue
		}
		asked = append(asked, r.Label()+": "+r.plan.Does)
	}
	if len(asked) == 0 || f.yes || ask.Yes("%s\nGive up %s?", strings.Join(asked, "\n"), cli.Count(len(asked), "reservation")) {
		return nil
	}
	return unconfirmed("%s needs a confirmation for %s, such as %s. Use --yes", cmd.CommandPath(), cli.Count(len(asked), "reservation"), asked[0])
}

// wouldRelease returns the end of a dry run.
func wouldRelease(all []released) error {
	if slices.ContainsFunc(all, func(r released) bool { return r.outcome == operate.Planned }) {
		return &cli.Failure{Code: cli.ExitWouldChange}
	}
	return nil
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
			_, l.Error = failure.ExplainAction("", r.Node, r.err)
			details = l.Error
		}
		lines[i] = l
		fmt.Fprintf(table, "%s\t%s\t%s\n", rest.OneLine(r.Label()), r.outcome, rest.OneLine(details))
	}
	if format == "json" {
		return cli.WriteJSON(to, lines)
	}
	return table.Flush()
}
