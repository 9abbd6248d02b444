package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// managed lists what the last applied configuration managed on a host, as paths: those of settings, and "/traits/NAME",
// "/capabilities/NAME", "/ports/MAC", "/port_extra/MAC/KEY", "/members/MAC" (ports in groups), "/port_groups/KEY",
// "/group_extra/GROUP/KEY", "/maintenance", "/maintenance_reason", "/power_state/VALUE". Private state keeps it, so that the provider
// removes from Ironic what is removed from the configuration, and leaves alone what was never in it.
type managed []string

// has reports whether a path, or anything below it, is managed.
func (m managed) has(path string) bool {
	return slices.ContainsFunc(m, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
}

// below returns the names directly below a path.
func (m managed) below(path string) []string {
	var names []string
	for _, p := range m {
		if name, ok := strings.CutPrefix(p, path+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// without returns what is managed except for the given names directly below a path.
func (m managed) without(path string, names []string) managed {
	return slices.DeleteFunc(slices.Clone(m), func(p string) bool {
		name, below := strings.CutPrefix(p, path+"/")
		return below && slices.Contains(names, name)
	})
}

// and returns what either of two configurations manages.
func (m managed) and(other managed) managed {
	all := slices.Concat(m, other)
	slices.Sort(all)
	return slices.Compact(all)
}

// private is what private state keeps of a host: see framework.KeepPrivate.
type private struct {
	Managed    managed         `json:"managed,omitzero"`            // nil: no configuration was applied
	Plan       *hosts.Plan     `json:"plan,omitzero"`               // what a plan has decided, until its apply
	Inspected  bool            `json:"inspected,omitzero"`          // the node has been inspected
	Pending    string          `json:"inspection_pending,omitzero"` // see host.PendingInspection
	Coming     bool            `json:"coming,omitzero"`             // Ironic is on the way to available with the node
	Quarantine string          `json:"quarantine,omitzero"`         // why the node is in quarantine
	Updated    time.Time       `json:"updated,omitzero"`            // see lost.Seen
	Anew       bool            `json:"anew,omitzero"`               // see host.Order.Doubtful
	Restored   *hosts.Restored `json:"restored,omitzero"`           // the record is being restored
	Protected  bool            `json:"protected,omitzero"`          // the node is protected
	Executed   string          `json:"executed,omitzero"`           // see host.ReplacedOn
	// Replacing is the replacement of the machine whose apply has failed.
	Replacing *hosts.Replacing `json:"replacing,omitzero"`
	// Unverified says that credentials have arrived for a host whose target_state is enroll, and that Ironic could not verify them.
	Unverified bool `json:"unverified,omitzero"`
	// OnMachine is what is known to be on the machine of the hardware configuration.
	OnMachine hosts.Hardware `json:"hardware,omitzero"`
	// Compared is what the last comparison of the machine with the hardware configuration has found.
	Compared *hosts.HardwareComparison `json:"compared,omitzero"`
	// Proof is how the machine compares with expect_hardware.
	Proof *hosts.Proof `json:"proof,omitzero"`
	// Fitness is how the machine stands with its qualification.
	Fitness *hosts.Fitness `json:"fitness,omitzero"`
	Cabling cablingNote    `json:"cabling,omitzero"`
	// Superseded is of the plan of a destruction that this run makes after a creation has taken the node over.
	Superseded bool `json:"superseded,omitzero"`
}

type cablingNote struct {
	Heard *cabling.Hearing `json:"heard,omitempty"` // in the last inspection
	Since time.Time        `json:"since"`           // when expect_neighbor changed last
}

// notes returns what private state says of a host to the noun.
func (p private) notes() hosts.Notes {
	return hosts.Notes{
		Applied: p.Managed != nil, Retires: p.Managed.has("/retired"), Powers: p.Managed.below("/power_state"),
		Inspected: p.Inspected, Pending: p.Pending, Coming: p.Coming, Quarantine: p.Quarantine, Unverified: p.Unverified,
		Protected: p.Protected, Executed: p.Executed, Replacing: p.Replacing,
		OnMachine: p.OnMachine, Compared: p.Compared, Anew: p.Anew, Proof: p.Proof, Fitness: p.Fitness,
	}
}

// planned returns what the plan has decided that Terraform applies.
func (p private) planned() (hosts.Plan, error) {
	if p.Plan == nil {
		return hosts.Plan{}, errors.New("the plan has no steps. Nothing was done. This is a bug of the provider")
	}
	return *p.Plan, nil
}

// applied notes what is known to be on the machine after a run.
func (p *private) applied(on hosts.Hardware) {
	if p.OnMachine = on; len(on.Parts()) == 0 {
		p.OnMachine = hosts.Hardware{}
	}
}

// see notes what the next plan needs of a node: whether it has been inspected, whether the inspection that triggers have requested is still
// to come, whether Ironic is on the way to available with the node, and why it is in quarantine.
func (p *private) see(node *ironic.Node) {
	p.Inspected = p.Inspected || !machine.InspectedAt(node).IsZero()
	p.Pending, p.Coming, p.Quarantine = hosts.PendingInspection(node), hosts.IsComing(node), quarantineOf(node)
	p.Protected, p.Executed, p.Restored = node.Protected, hosts.ReplacedOn(node), hosts.RestoredOf(node)
}

// hasSeen reports whether see would change nothing.
func (p private) hasSeen(node *ironic.Node) bool {
	again := p
	again.see(node)
	return again.Inspected == p.Inspected && again.Pending == p.Pending && again.Coming == p.Coming && again.Quarantine == p.Quarantine &&
		again.Protected == p.Protected && again.Executed == p.Executed && (again.Restored == nil) == (p.Restored == nil) &&
		(p.Restored == nil || *again.Restored == *p.Restored)
}

// quarantineOf says why a node is in quarantine; "" if it is in none.
func quarantineOf(node *ironic.Node) string {
	if quarantine := notes.QuarantineOf(node); quarantine != nil {
		return quarantine.String()
	}
	return ""
}

func (h *host) seeNew(ctx context.Context, node *ironic.Node, p *private, diags *diag.Diagnostics) {
	if !p.Inspected {
		is, notices := hosts.WasInspected(ctx, h.Site, node)
		framework.Show(diags, notices...)
		p.Inspected = is
	}
	if node.Fault != "" {
		framework.Show(diags, machine.WarnHealth(node)...)
	}
}

// compare notes how the machine differs from the hardware configuration of a state, as with says. It gets what was noted before.
func (p *private) compare(
	drift hosts.HardwareDrift, with func(before *hosts.HardwareComparison) (*hosts.HardwareComparison, []decide.Notice),
	diags *diag.Diagnostics,
) {
	if !drift.Compares() {
		p.Compared = nil
		return
	}
	now, notices := with(p.Compared)
	p.Compared = now
	framework.Show(diags, notices...)
}

// isCompared reports whether private.compare would change nothing.
func (h *host) isCompared(ctx context.Context, m *model, node *ironic.Node, notes hosts.Notes) bool {
	applied := m.onMachine(ctx, notes)
	if !m.drift(h.HardwareDrift).V.Compares() || len(applied.Parts()) == 0 {
		return notes.Compared == nil
	}
	return notes.Compared.Holds(node, applied)
}

// hear notes what the last inspection has heard, if a state expects anything of the cables. since is when an apply has begun that has
// changed that; zero: none has.
func (h *host) hear(ctx context.Context, m *model, node *ironic.Node, since time.Time, p *private, diags *diag.Diagnostics) {
	if len(m.ends(ctx)) == 0 {
		p.Cabling = cablingNote{}
		return
	}
	if !since.IsZero() {
		p.Cabling.Since = since.UTC().Truncate(time.Second)
	}
	var notices []decide.Notice
	p.Cabling.Heard, notices = hosts.HearNeighbours(ctx, h.Site, node, p.Cabling.Heard)
	framework.Show(diags, notices...)
}

// hasHeard reports whether hear would change nothing.
func (p private) hasHeard(ctx context.Context, m *model, node *ironic.Node) bool {
	heard, at := p.Cabling.Heard, machine.InspectedAt(node)
	if len(m.ends(ctx)) == 0 {
		return p.Cabling == cablingNote{}
	}
	return at.IsZero() || heard != nil && !at.After(heard.At)
}
