package host

import (
	"context"
	"encoding/json"
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

const managedKey = "managed"

// noted is private state that a response returns.
type noted interface {
	framework.GettablePrivate
	framework.SettablePrivate
}

func readManaged(ctx context.Context, p framework.GettablePrivate) managed {
	var m managed
	text, _ := p.GetKey(ctx, managedKey)
	_ = json.Unmarshal(text, &m) // absent before the first apply
	return m
}

func (m managed) write(ctx context.Context, p framework.SettablePrivate) diag.Diagnostics {
	text, err := json.Marshal(m)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return p.SetKey(ctx, managedKey, text)
}

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

// and returns what either of two configurations manages.
func (m managed) and(other managed) managed {
	all := slices.Concat(m, other)
	slices.Sort(all)
	return slices.Compact(all)
}

// Keys in private state.
const (
	// planKey holds, from a plan to its apply, what the plan has decided: a host.Plan of the noun.
	planKey = "plan"
	// inspectedKey says that the node has been inspected.
	inspectedKey = "inspected"
	// pendingKey holds the fingerprint of the triggers whose inspection has not succeeded yet.
	pendingKey = "inspection_pending"
	// comingKey says that Ironic is on the way to available with the node.
	comingKey = "coming"
	// quarantineKey holds why the node is in quarantine.
	quarantineKey = "quarantine"
	// unverifiedKey says that credentials have arrived for a host whose target_state is enroll, and that Ironic could not verify them.
	unverifiedKey = "unverified"
	// comparedKey holds what the last comparison of the machine with the hardware configuration has found: a host.HardwareComparison.
	comparedKey = "compared"
	// cablingKey holds what the cards of the machine have heard from their switches: a cablingNote.
	cablingKey = "cabling"
	// hardwareKey holds what is known to be on the machine of the hardware configuration.
	hardwareKey = "hardware"
)

// readNotes reads what private state says of a host.
func readNotes(ctx context.Context, p framework.GettablePrivate) hosts.Notes {
	unverified, _ := p.GetKey(ctx, unverifiedKey)
	before := readManaged(ctx, p)
	notes := hosts.Notes{
		Applied: before != nil, Retires: before.has("/retired"), Powers: before.below("/power_state"), Inspected: wasInspected(ctx, p),
		Pending: textOf(ctx, p, pendingKey), Coming: textOf(ctx, p, comingKey) != "", Quarantine: textOf(ctx, p, quarantineKey), Unverified: unverified != nil,
	}
	hardware, _ := p.GetKey(ctx, hardwareKey)
	_ = json.Unmarshal(hardware, &notes.OnMachine) // absent before the first apply
	compared, _ := p.GetKey(ctx, comparedKey)
	_ = json.Unmarshal(compared, &notes.Compared) // absent unless hardware_drift asks for it
	return notes
}

// writePlan stores for the apply what a plan has decided.
func writePlan(ctx context.Context, p framework.SettablePrivate, decided hosts.Plan) diag.Diagnostics {
	text, err := json.Marshal(decided)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return p.SetKey(ctx, planKey, text)
}

// readPlan returns what the plan has decided that Terraform applies.
func readPlan(ctx context.Context, p framework.GettablePrivate) (decided hosts.Plan, err error) {
	text, _ := p.GetKey(ctx, planKey)
	if text == nil {
		return decided, errors.New("the plan has no steps. Nothing was done. This is a bug of the provider")
	}
	return decided, json.Unmarshal(text, &decided)
}

// textOf returns a text that private state has; "" if there is none.
func textOf(ctx context.Context, p framework.GettablePrivate, key string) (text string) {
	if value, _ := p.GetKey(ctx, key); value != nil {
		_ = json.Unmarshal(value, &text) // a text of our own
	}
	return text
}

// setText stores a text in private state, or removes it if it is empty.
func setText(ctx context.Context, p framework.SettablePrivate, key, text string) diag.Diagnostics {
	if text == "" {
		return p.SetKey(ctx, key, nil)
	}
	value, _ := json.Marshal(text) // a string always marshals
	return p.SetKey(ctx, key, value)
}

// writeHardware records what is known to be on the machine after a run.
func (c *change) writeHardware(ctx context.Context, p framework.SettablePrivate) diag.Diagnostics {
	applied := c.work.Applied()
	if len(applied.Parts()) == 0 {
		return p.SetKey(ctx, hardwareKey, nil)
	}
	text, err := json.Marshal(applied)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return p.SetKey(ctx, hardwareKey, text)
}

// noteComparison records in private state how the machine differs from the hardware configuration of a state.
func (h *host) noteComparison(ctx context.Context, m *model, node *ironic.Node, p noted, diags *diag.Diagnostics) {
	notes := readNotes(ctx, p)
	if !m.drift(h.HardwareDrift).V.Compares() {
		diags.Append(p.SetKey(ctx, comparedKey, nil)...)
		return
	}
	now, notices := hosts.CompareHardware(ctx, h.Site, node, m.onMachine(ctx, notes), notes.Compared)
	framework.Show(diags, notices...)
	diags.Append(setComparison(ctx, p, now)...)
}

// noteComparison is the same after an apply.
func (c *change) noteComparison(ctx context.Context, h *host, p noted, diags *diag.Diagnostics) {
	if !c.plan.drift(h.HardwareDrift).V.Compares() {
		diags.Append(p.SetKey(ctx, comparedKey, nil)...)
		return
	}
	now, notices := c.work.Compare(context.WithoutCancel(ctx), readNotes(ctx, p).Compared)
	framework.Show(diags, notices...)
	diags.Append(setComparison(ctx, p, now)...)
}

func setComparison(ctx context.Context, p framework.SettablePrivate, c *hosts.HardwareComparison) diag.Diagnostics {
	if c == nil {
		return p.SetKey(ctx, comparedKey, nil)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return p.SetKey(ctx, comparedKey, text)
}

// isCompared reports whether noteComparison would change nothing.
func (h *host) isCompared(ctx context.Context, m *model, node *ironic.Node, notes hosts.Notes) bool {
	applied := m.onMachine(ctx, notes)
	if !m.drift(h.HardwareDrift).V.Compares() || len(applied.Parts()) == 0 {
		return notes.Compared == nil
	}
	return notes.Compared.Holds(node, applied)
}

// cablingNote is what private state says of the cables of a host.
type cablingNote struct {
	Heard *cabling.Hearing `json:"heard,omitempty"` // in the last inspection
	Since time.Time        `json:"since"`           // when expect_neighbor changed last
}

func readCabling(ctx context.Context, p framework.GettablePrivate) (note cablingNote) {
	text, _ := p.GetKey(ctx, cablingKey)
	_ = json.Unmarshal(text, &note) // absent without expect_neighbor
	return note
}

// noteCabling records in private state what the last inspection has heard, if a state expects anything of the cables. since is when an
// apply has begun that has changed that; zero: none has.
func (h *host) noteCabling(ctx context.Context, m *model, node *ironic.Node, since time.Time, p noted, diags *diag.Diagnostics) {
	if len(m.ends(ctx)) == 0 {
		diags.Append(p.SetKey(ctx, cablingKey, nil)...)
		return
	}
	note := readCabling(ctx, p)
	if !since.IsZero() {
		note.Since = since.UTC().Truncate(time.Second)
	}
	var notices []decide.Notice
	note.Heard, notices = hosts.HearNeighbours(ctx, h.Site, node, note.Heard)
	framework.Show(diags, notices...)
	text, err := json.Marshal(note)
	if err != nil {
		diags.AddError("The provider has a bug", err.Error())
		return
	}
	diags.Append(p.SetKey(ctx, cablingKey, text)...)
}

// isHeard reports whether noteCabling would change nothing.
func isHeard(ctx context.Context, m *model, node *ironic.Node, p framework.GettablePrivate) bool {
	note, at := readCabling(ctx, p), machine.InspectedAt(node)
	if len(m.ends(ctx)) == 0 {
		return note == cablingNote{}
	}
	return at.IsZero() || note.Heard != nil && !at.After(note.Heard.At)
}

// noteNode records in private state what the next plan needs of a node: whether the inspection that triggers have requested is still to
// come, whether Ironic is on the way to available with the node, and why it is in quarantine.
func noteNode(ctx context.Context, node *ironic.Node, p framework.SettablePrivate) (diags diag.Diagnostics) {
	coming := ""
	if hosts.IsComing(node) {
		coming = node.TargetProvisionState
	}
	diags.Append(setText(ctx, p, pendingKey, hosts.PendingInspection(node))...)
	diags.Append(setText(ctx, p, comingKey, coming)...)
	diags.Append(setText(ctx, p, quarantineKey, quarantineOf(node))...)
	return diags
}

// quarantineOf says why a node is in quarantine; "" if it is in none.
func quarantineOf(node *ironic.Node) string {
	if quarantine := notes.QuarantineOf(node); quarantine != nil {
		return quarantine.String()
	}
	return ""
}

// noteInspection records in private state whether a node that is new to Terraform has been inspected.
func (h *host) noteInspection(ctx context.Context, node *ironic.Node, had framework.GettablePrivate, p framework.SettablePrivate, diags *diag.Diagnostics) {
	if wasInspected(ctx, had) {
		noteInspected(ctx, node, p, diags)
		return
	}
	is, notices := hosts.WasInspected(ctx, h.Site, node)
	framework.Show(diags, notices...)
	if is {
		diags.Append(p.SetKey(ctx, inspectedKey, []byte("true"))...)
	}
}

// noteInspected records in private state that this run or an earlier one has inspected the machine.
func (c *change) noteInspected(ctx context.Context, p framework.SettablePrivate, diags *diag.Diagnostics) {
	if c.work.Inspected {
		diags.Append(p.SetKey(ctx, inspectedKey, []byte("true"))...)
		return
	}
	noteInspected(ctx, c.work.Node(), p, diags)
}

// noteInspected records in private state that a node has been inspected, if Ironic says so.
func noteInspected(ctx context.Context, node *ironic.Node, p framework.SettablePrivate, diags *diag.Diagnostics) {
	if !machine.InspectedAt(node).IsZero() {
		diags.Append(p.SetKey(ctx, inspectedKey, []byte("true"))...)
	}
}

// wasInspected reports whether private state says that the node has been inspected.
func wasInspected(ctx context.Context, p framework.GettablePrivate) bool {
	noted, _ := p.GetKey(ctx, inspectedKey)
	return string(noted) == "true"
}

// noteUnverified records in private state whether Ironic could not verify credentials that have arrived.
func (c *change) noteUnverified(ctx context.Context, p framework.SettablePrivate) diag.Diagnostics {
	if c.work.IsUnverified() {
		return p.SetKey(ctx, unverifiedKey, []byte("true"))
	}
	return p.SetKey(ctx, unverifiedKey, nil)
}
