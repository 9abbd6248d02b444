package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
)

const aboutShow = `metal show tells on one page what a machine is, who holds it, what runs on it, what is in progress, what has failed last, what
runs of Terraform have noted on it, and what to do next. It changes nothing, and shows no secret.

  metal show rack1-07
  metal show rack1-07 --output json`

func newShow(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "show NODE", Short: "Show one machine, and what to do next about it", Long: aboutShow, Args: cli.OneNode}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := open(cmd, s, *output)
		if err != nil {
			return err
		}
		found, err := look(cmd.Context(), client, args[0])
		switch {
		case api.IsNotFound(err):
			return &cli.Failure{Code: cli.ExitNothing, Err: fmt.Errorf("%s has no node %s that you may see", s.IronicName(), args[0])}
		case err != nil:
			return s.Unread("node "+args[0], err)
		case *output == "json":
			return rest.WriteJSON(cmd.OutOrStdout(), found)
		}
		writePage(cli.Folded(cmd.OutOrStdout()), found, client.ServerNow())
		return nil
	}
	return cmd
}

func outputFlag(cmd *cobra.Command) *string {
	cmd.Flags().SortFlags = false
	return cmd.Flags().String("output", "table", "`format` on standard output: table, or json")
}

// open reads the settings and returns a client. It makes no request.
func open(cmd *cobra.Command, s *cli.Settings, output string) (*ironic.Client, error) {
	if err := errors.Join(cli.CheckOutput(output), s.CompleteIronic(cmd.Flags())); err != nil {
		return nil, err
	}
	s.LogRequests(cmd)
	return ironic.New(s.Ironic.Config, ironic.Polls{}), nil
}

// look reads a machine: the node, its ports, the allocation that has reserved it, and its history. Without the right to see one of the last
// three, it goes on.
func look(ctx context.Context, client *ironic.Client, ref string) (*show.Description, error) {
	node, err := client.Node(ctx, ref)
	if err != nil {
		return nil, err
	}
	if node.Hidden.LastError { // also the states of a node have it
		if text, hidden, err := client.LastError(ctx, node.UUID); err == nil {
			node.LastError, node.Hidden.LastError = text, hidden
		}
	}
	var hidden []string
	var allocation *ironic.Allocation
	if node.AllocationUUID != "" {
		switch allocation, err = client.Allocation(ctx, node.AllocationUUID); {
		case api.IsNotFound(err), api.IsForbidden(err):
			hidden = append(hidden, "allocation")
		case err != nil:
			return nil, err
		}
	}
	ports, err := client.Ports(ctx, node.UUID)
	switch {
	case api.IsForbidden(err):
		hidden = append(hidden, "ports")
	case err != nil:
		return nil, err
	}
	history, shown, err := historyOf(ctx, client, node.UUID)
	if err != nil {
		return nil, err
	}
	if !shown {
		hidden = append(hidden, "history")
	}
	if node.LastError == "" && states.OperationFailed(node) {
		node.LastError = evidence.LastOf(history)
	}
	found := show.Describe(node, slices.Sorted(maps.Keys(ports)), allocation, history, client.ServerNow())
	found.Hidden = append(found.Hidden, hidden...)
	if found.Failure != nil {
		found.Evidence = evidence.Look{Ironic: client}.Of(ctx, node, machine.Why(node))
	}
	if len(found.KeptDisks) > 0 {
		if inventory, err := client.Inventory(ctx, node.UUID); err == nil && inventory != nil { // else the hints alone are shown
			found.Inspected(node, inventory.Disks)
		}
	}
	return found, nil
}

// historyOf reads the history of a node. An Ironic without histories has none to show.
func historyOf(ctx context.Context, client *ironic.Client, id string) (events []ironic.Event, shown bool, err error) {
	events, err = client.History(ctx, id)
	if api.IsNotFound(err) || api.IsForbidden(err) {
		return nil, api.IsNotFound(err), nil
	}
	return events, true, err
}

// newReport returns a command that reports on selected machines, of all fields.
func newReport(s *cli.Settings, cmd *cobra.Command, report reporter) *cobra.Command {
	return reportWith(s, cmd, (*cli.SelectionFlags).DeclareForOnce, nil, report)
}

// reporter reports on machines.
type reporter func(client *ironic.Client, nodes []ironic.Node, output string) error

func reportWith(
	s *cli.Settings, cmd *cobra.Command, declare func(*cli.SelectionFlags, *cobra.Command), fields []string, report reporter,
) *cobra.Command {
	var selects cli.SelectionFlags
	cmd.Args = cobra.ArbitraryArgs
	declare(&selects, cmd)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		selected, wrong := selects.Selection(cmd, args)
		client, err := open(cmd, s, *output)
		if err := errors.Join(wrong, err); err != nil {
			return err
		}
		nodes, err := s.Machines(cmd.Context(), client, selected, fields)
		if err != nil {
			return err
		}
		return report(client, nodes, *output)
	}
	return cmd
}

// page writes lines of a page: a title, and what is known under it.
type page struct {
	to    io.Writer
	title string // of the next section, until it has a line
}

// section begins a section. A section without lines is left out.
func (p *page) section(title string) { p.title = title }

// line writes a line, unless its value is empty.
func (p *page) line(name, value string) {
	if value == "" {
		return
	}
	if p.title != "" {
		fmt.Fprintf(p.to, "%s\n", p.title)
		p.title = ""
	}
	if name != "" {
		name = fmt.Sprintf("%-16s", name+":")
	}
	fmt.Fprintf(p.to, "  %s\n", strings.TrimRight(name+rest.OneLine(value), " "))
}

func writePage(to io.Writer, d *show.Description, now time.Time) {
	p := &page{to: to}
	p.section(rest.OneLine(cmp.Or(d.Name, d.ID)))
	p.line("UUID", d.ID)
	p.line("Description", d.Description)
	p.line("Class", d.ResourceClass)
	p.line("Traits", strings.Join(d.Traits, ", "))
	p.line("Hardware", d.Hardware)
	p.line("BMC", strings.TrimSpace(d.BMC+" ("+d.Driver+")"))
	p.line("Boot interface", d.BootInterface)
	p.line("Kept disks", strings.Join(d.KeptDisks, "; "))
	p.line("MAC addresses", strings.Join(d.MACs, ", "))
	p.line("Conductor", strings.TrimPrefix(d.Conductor+inGroup(d.ConductorGroup), ", "))
	p.line("Owner", d.Owner)
	p.line("Lessee", d.Lessee)
	writeHolder(p, &d.Held)
	p.section("What runs")
	p.line("State", d.State+since(d.Since, now))
	p.line("Power", d.Power)
	p.line("Health", d.Health)
	p.line("Boot mode", d.BootMode+secureBoot(d.SecureBoot))
	p.line("Image", d.Image)
	p.line("Live ISO", d.LiveISO)
	p.line("Protected", yes(d.Protected, ""))
	p.line("Retired", yes(d.Retired, d.RetiredReason))
	p.line("Maintenance", yes(d.Maintenance, d.MaintenanceReason))
	p.section("In progress")
	if d.Operation != "" {
		p.line("Operation", d.Operation+since(d.Since, now))
	}
	p.line("Locked by", d.LockedBy)
	writeFailure(p, d)
	p.section("Notes of runs")
	for _, note := range d.Notes {
		p.line("", note.String())
	}
	if len(d.Notes) > 0 {
		p.line("", notes.Hearsay)
	}
	p.section("What to do next")
	for _, text := range d.Next {
		p.line("", text)
	}
	switch {
	case len(d.Next) == 0 && len(d.Hidden) > 0:
		p.line("", "Nothing that is visible to you: Ironic hides a part of the node, see below.")
	case len(d.Next) == 0:
		p.line("", "Nothing: the machine needs no attention.")
	}
	p.section("What Ironic hides from you")
	p.line("", strings.Join(d.Hidden, ", "))
}

func writeFailure(p *page, d *show.Description) {
	p.section("What has failed")
	p.line("Fault", d.Fault)
	if d.Failure != nil && d.Failure.Reason != "" {
		p.line("Reason", d.Failure.Line())
	}
	p.line("Last error", d.LastError)
	for _, fact := range d.Evidence {
		p.line("Looked up", fact)
	}
	if d.Failures > 0 {
		p.line("Failures", fmt.Sprintf("%d since the last success", d.Failures))
	}
	for _, event := range d.History {
		p.line("", event)
	}
}

func writeHolder(p *page, h *show.Holder) {
	p.section("Who holds it")
	if h.Instance == "" {
		p.line("", "It is not reserved.")
	}
	p.line("Instance", strings.TrimSpace(h.Instance+" "+h.InstanceName))
	p.line("Allocation", strings.TrimSpace(h.AllocationName+" "+h.AllocationID))
	for _, key := range slices.Sorted(maps.Keys(h.AllocationExtra)) {
		text, _ := json.Marshal(h.AllocationExtra[key]) //nolint:errchkjson // it was decoded from JSON
		p.line("", key+" = "+string(text))
	}
	p.line("Run", h.Run)
	p.line("OneView", h.Hardware)
	p.line("Server profile", h.Profile)
}

// inGroup names a conductor group; "" if there is none.
func inGroup(group string) string {
	if group == "" {
		return ""
	}
	return ", conductor group " + group
}

// since says since when something is so.
func since(at *time.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	age, _ := clock.Age(*at, now)
	return fmt.Sprintf(", since %s (%s)", at.UTC().Format(time.RFC3339), age.Round(time.Second))
}

// secureBoot says whether secure boot is on; "" if Ironic does not know it.
func secureBoot(on *bool) string {
	switch {
	case on == nil:
		return ""
	case *on:
		return ", secure boot"
	}
	return ", no secure boot"
}

// yes says that something is so, and why; "" if it is not.
func yes(is bool, why string) string {
	switch {
	case !is:
		return ""
	case why == "":
		return "yes"
	}
	return "yes, " + why
}
