package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// planNewHardware plans pending_changes of a new host, and warns of volumes that are deleted. A node that a killed run has begun may have the
// volumes already.
func (h *host) planNewHardware(ctx context.Context, plan, config *model, diags *diag.Diagnostics) {
	wanted, known := config.hardware(ctx)
	open := wanted.Parts()
	switch {
	case len(open) == 0:
		plan.PendingChanges = partsValue(nil)
		return
	case known && (plan.TargetState.ValueString() == targetEnroll || framework.IsFalse(plan.PowerManaged) && !plan.byAgent()):
		plan.PendingChanges = partsValue(open)
		return
	}
	plan.PendingChanges = types.SetUnknown(types.StringType)
	if !config.raidDeletes(ctx, open) {
		return
	}
	if over := h.takesOver(ctx, config); over != nil && over.By != nil && known {
		node, err := h.Client.Node(ctx, over.Node.UUID)
		if err == nil {
			seen, _ := h.Client.SeeHardware(ctx, node, []provision.Part{provision.PartRAID}) // RAID is in the node
			open = wanted.Only([]provision.Part{provision.PartRAID}).Work(provision.Hardware{}, seen).Parts()
		}
	}
	if config.raidDeletes(ctx, open) {
		warnRAID(diags, plan)
	}
}

// findHardware reads what the machine has of the open parts if the configuration changes them, or if this plan would apply them. It
// refuses settings that the BIOS does not accept, and returns the notes with the parts that are on the machine already.
func (h *host) findHardware(ctx context.Context, plan, config, state *model, known notes, diags *diag.Diagnostics) notes {
	steps := stepsFrom(state, plan, config, known)
	acts := steps.configures || steps.services
	wanted, complete := config.hardware(ctx)
	if len(known.open) == 0 || !complete || !h.Known() || !acts && plan.sameHardware(state) {
		return known
	}
	if config.tooOld(ctx, h) {
		return known // checkVersions reports it
	}
	doing := "read the hardware settings of host " + plan.describe()
	node, err := h.Client.NodeForRefresh(ctx, state.ID.ValueString())
	if err != nil {
		framework.ReportUndone(diags, doing, err)
		return known
	}
	seen, err := h.Client.SeeHardware(ctx, node, known.open)
	if err != nil {
		framework.ReportUndone(diags, doing, err)
		return known
	}
	for _, unfit := range wanted.Only(known.open).Unfit(seen) {
		diags.AddAttributeError(path.Root("bios_settings").AtMapKey(unfit.Setting), "BIOS setting is not possible", fmt.Sprintf("Host %s: %s", plan.describe(), unfit.Reason))
	}
	known.found = without(known.open, wanted.Work(known.hardware, seen).Parts())
	return known.of(ctx, config)
}

// tooOld reports whether Ironic is too old for the hardware configuration.
func (m *model) tooOld(ctx context.Context, h *host) bool {
	version, err := h.Client.Microversion(ctx)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(hardwareAttributes(), func(a attribute) bool {
		return a.feature != nil && a.feature(m).Used && a.feature(m).Since > version
	})
}

// planHardware plans pending_changes, and warns of what changing hardware does to the machine. It returns whether the warning covers
// the cleaning of a host that leaves the pool.
func (m *model) planHardware(ctx context.Context, config, state *model, known notes, steps steps, diags *diag.Diagnostics) (leaves bool) {
	_, complete := config.hardware(ctx)
	m.PendingChanges = partsValue(known.open)
	if len(known.open) == 0 {
		return false
	}
	if steps.configures || steps.services || !complete {
		m.PendingChanges = types.SetUnknown(types.StringType)
	}
	changed := strings.Join(provision.PartNames(known.open), ", ")
	at := path.Root(string(known.open[0]))
	switch {
	case steps.services:
		m.ProvisionState = types.StringUnknown()
		changed = strings.Join(provision.PartNames(liveParts(known.open)), ", ")
		diags.AddAttributeWarning(at, "Deployed machine restarts", fmt.Sprintf("Host %s is deployed. Ironic changes %s in a service: the machine restarts, and what runs on it is down for that time.", m.describe(), changed))
	case steps.configures && state.ProvisionState.ValueString() == string(provision.GoalAvailable):
		leaves = true
		diags.AddAttributeWarning(at, "Host leaves the pool", fmt.Sprintf("Host %s is available. For %s, Ironic takes it out of the pool and restarts it%s.", m.describe(), changed, m.thenReturns()))
	case steps.configures:
		diags.AddAttributeWarning(at, "Hardware change restarts the machine", fmt.Sprintf("Ironic changes %s of host %s in a manual cleaning. The machine restarts.", changed, m.describe()))
	case !m.sameHardware(state):
		diags.AddAttributeWarning(at, "Hardware change waits", fmt.Sprintf("Host %s is in state %s%s, so %s does not change now: pending_changes lists it. "+
			"The change is planned again when Ironic may clean the machine.%s", m.describe(), state.ProvisionState.ValueString(), m.held(state), changed, serviceHint(state, known)))
	}
	if steps.configures && config.raidDeletes(ctx, known.open) {
		warnRAID(diags, m)
	}
	return leaves
}

// thenReturns says how a host comes back to the pool.
func (m *model) thenReturns() string {
	switch {
	case m.TargetState.ValueString() != string(provision.GoalAvailable):
		return ""
	case framework.IsFalse(m.AutomatedClean):
		return ", and makes it available again"
	}
	return ", and cleans it before it is available again: the machine loses the data that the site's clean steps erase"
}

// held says what, besides its state, keeps Ironic from cleaning a host.
func (m *model) held(state *model) string {
	text := ""
	if !state.InstanceID.IsNull() {
		text += " and reserved"
	}
	if m.heldInMaintenance(state) {
		text += " and in maintenance"
	}
	return text
}

func serviceHint(state *model, known notes) string {
	if known.live || !provision.Deployed(state.node()) || len(liveParts(known.open)) == 0 {
		return ""
	}
	return ` Since API 1.87 of Ironic, hardware_changes = { on_active = "service" } changes BIOS settings and firmware of a deployed machine.`
}

func warnRAID(diags *diag.Diagnostics, plan *model) {
	diags.AddAttributeWarning(path.Root("raid").AtName("delete_existing"), "All RAID volumes are deleted",
		fmt.Sprintf("Ironic deletes every RAID volume of host %s before it creates the configured ones. All data on the disks of these volumes is lost.", plan.describe()))
}

// writeFound records for the apply which parts the plan found on the machine.
func writeFound(ctx context.Context, p framework.SettablePrivate, found []provision.Part) diag.Diagnostics {
	if len(found) == 0 {
		return p.SetKey(ctx, foundKey, nil)
	}
	text, err := json.Marshal(found)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return p.SetKey(ctx, foundKey, text)
}

func readFound(ctx context.Context, p framework.GettablePrivate) (found []provision.Part) {
	text, _ := p.GetKey(ctx, foundKey)
	_ = json.Unmarshal(text, &found) // absent unless a plan has found something
	return found
}
