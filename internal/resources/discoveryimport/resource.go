// Package discoveryimport implements the resource metal_discovery_import: names for discovered nodes.
package discoveryimport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

var (
	_ framework.Managed                   = (*discoveryImport)(nil)
	_ resource.ResourceWithValidateConfig = (*discoveryImport)(nil)
)

// claimers is the number of machines that are named at the same time.
const claimers = 8

// New returns metal_discovery_import.
func New() resource.Resource { return newDiscoveryImport() }

type discoveryImport struct{ framework.Resource }

func newDiscoveryImport() *discoveryImport {
	return &discoveryImport{framework.Resource{
		Type: "metal_discovery_import", IsThat: "Name of the resource: the owner label that it writes to nodes.",
	}}
}

// ModifyPlan decides which machines the resource takes, and their names. It decides during the plan, so that hosts is known to
// the resources that refer to it.
func (d *discoveryImport) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan, config discoveryModel
	var state *discoveryModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !d.Known() {
		resp.Diagnostics.AddError("Discovery needs Ironic during plan", "The provider's configuration is not known yet, so the plan "+
			"cannot list the discovered machines. First apply the resources that it depends on, with -target, or set the values directly.")
		return
	}
	if !config.fullyKnown(ctx) {
		plan.Hosts, plan.Pending = types.MapUnknown(discoveredType), types.MapUnknown(types.StringType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	if state != nil && !plan.Name.Equal(state.Name) { // a replacement: Terraform plans once more, without a state
		plan.Hosts, plan.Pending = types.MapUnknown(discoveredType), types.MapUnknown(types.StringType)
		state.warnLeaving(&resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	seen := framework.LoadPrivate[private](ctx, req.Private).Survey
	if seen == nil && state != nil { // the last refresh or apply has found no news
		seen = &found.Survey{}
	}
	remembered := seen != nil
	if !remembered {
		var err error
		if seen, err = d.survey(ctx, &plan, state); err != nil {
			framework.Report(&resp.Diagnostics, "list discovered machines", err)
			return
		}
	}
	plan.decide(seen, state, &resp.Diagnostics)
	if state != nil && plan.Hosts.Equal(state.Hosts) && plan.Pending.Equal(state.Pending) && !plan.Before.IsNull() &&
		!state.Before.IsNull() {
		plan.Before = state.Before // a later time alone is no difference
	}
	if !remembered && (state == nil || !plan.Pending.Equal(state.Pending)) {
		plan.Pending = types.MapUnknown(types.StringType) // Terraform plans again during apply, and reasons change by the second
	}
	if len(seen.Late) > 0 {
		plan.Pending = types.MapUnknown(types.StringType) // so that there is something to apply
		framework.Show(&resp.Diagnostics, found.WarnLate(plan.namesOf(seen.Late)))
	}
	plan.ID = plan.Name
	for name, value := range plan.Hosts.Elements() {
		if _, held := state.hosts()[name]; !held {
			expect.ExpectName(d.Site, name, hostID(value))
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// hosts returns the machines of a state; none if there is no state.
func (m *discoveryModel) hosts() map[string]attr.Value {
	if m == nil {
		return nil
	}
	return m.Hosts.Elements()
}

// namesOf returns the names of the machines that have the given nodes, sorted.
func (m *discoveryModel) namesOf(ids []string) (names []string) {
	for name, value := range m.Hosts.Elements() {
		if slices.Contains(ids, hostID(value)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// warnLeaving warns of the machines that hosts loses if the discovery gets another name.
func (m *discoveryModel) warnLeaving(diags *diag.Diagnostics) {
	if n := len(m.Hosts.Elements()); n > 0 {
		framework.Show(diags, found.LeavingHosts(n, m.Name.ValueString()))
	}
}

func (m *discoveryModel) decide(seen *found.Survey, state *discoveryModel, diags *diag.Diagnostics) {
	rules := m.rules()
	hosts := map[string]attr.Value{}
	if state != nil && framework.IsSet(state.Hosts) {
		maps.Copy(hosts, state.Hosts.Elements())
	}
	decided := rules.Decide(withFacts(seen.All(), hosts))
	if decided.Err != nil {
		diags.AddAttributeError(path.Root("on_collision"), "Two machines would have the same name", decided.Err.Error()+".")
		return
	}
	held := map[string]bool{}
	for _, value := range hosts {
		held[hostID(value)] = true
	}
	for _, named := range decided.Hosts {
		if !held[named.Host.ID] {
			hosts[named.Name] = discoveredValue(named.Host)
		}
	}
	m.Hosts = types.MapValueMust(discoveredType, hosts)
	pending := map[string]attr.Value{}
	takes := state == nil || len(hosts) > len(held)
	var lines []string
	for _, h := range seen.Hosts {
		if reason := decided.Pending[h.ID]; reason != "" && !held[h.ID] {
			pending[h.ID] = types.StringValue(reason)
			if takes || reason != naming.MaxHostsReached { // else each plan would say it, and there is nothing to correct
				lines = append(lines, h.Describe()+": "+reason)
			}
		}
	}
	m.Pending = types.MapValueMust(types.StringType, pending)
	framework.Show(diags, found.WarnPending(lines)...)
}

// withFacts adds to the held machines the facts of hosts by which a later node of the same machine is recognised. Their inventories
// are not read again.
func withFacts(all []naming.Host, hosts map[string]attr.Value) []naming.Host {
	known := map[string]map[string]attr.Value{}
	for _, value := range hosts {
		if object, ok := value.(types.Object); ok {
			known[hostID(value)] = object.Attributes()
		}
	}
	for i, h := range all {
		facts := known[h.ID]
		if facts == nil || h.HasInventory {
			continue
		}
		serial, _ := facts["serial_number"].(types.String)
		bmc, _ := facts["bmc_address"].(types.String)
		all[i].Serial, all[i].BMCAddress = serial.ValueString(), bmc.ValueString()
	}
	return all
}

func hostID(value attr.Value) string {
	object, _ := value.(types.Object)
	id, _ := object.Attributes()["id"].(types.String)
	return id.ValueString()
}

func withID(value attr.Value, id string) attr.Value {
	object, _ := value.(types.Object)
	facts := object.Attributes()
	facts["id"] = types.StringValue(id)
	return types.ObjectValueMust(discoveredType.AttrTypes, facts)
}

// Create names the planned machines.
func (d *discoveryImport) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan discoveryModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	d.NoteSite(ctx, resp.Private, true, &resp.Diagnostics)
	d.settle(ctx, &plan, nil, &resp.Diagnostics)
	d.lookAgain(ctx, &plan, kept, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Update names the new machines of the plan.
func (d *discoveryImport) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan, state discoveryModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	d.settle(ctx, &plan, &state, &resp.Diagnostics)
	if kept.Survey != nil {
		d.restoreMarks(ctx, &state, kept.Survey.Unmarked, &resp.Diagnostics)
		for _, id := range kept.Survey.Late {
			if err := found.ReleaseLate(ctx, d.Site, id); err != nil {
				framework.Report(&resp.Diagnostics, "release discovered node "+id, err)
			}
		}
	}
	d.lookAgain(ctx, &plan, kept, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// settle claims the new machines of a plan. It reports an error for those that it could not claim, and removes them from the
// plan's hosts, so that the state is correct.
func (d *discoveryImport) settle(ctx context.Context, plan, state *discoveryModel, diags *diag.Diagnostics) {
	hosts := plan.Hosts.Elements()
	had := state.hosts()
	var added []string
	for name := range hosts {
		if _, held := had[name]; !held {
			added = append(added, name)
		}
	}
	problems := map[string]error{}
	for i, err := range routine.Each(len(added), claimers, func(i int) error {
		return d.claim(ctx, hostID(hosts[added[i]]), plan.mark(added[i]))
	}) {
		if err != nil {
			problems[added[i]] = err
		}
	}
	if len(problems) == 0 {
		return
	}
	var lines []string
	interrupted := false
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		interrupted = interrupted || api.IsInterrupted(problems[name])
		_, detail := failure.Explain("", problems[name])
		lines = append(lines, fmt.Sprintf("%s (node %s): %s", name, hostID(hosts[name]), detail))
		delete(hosts, name)
	}
	plan.Hosts = types.MapValueMust(discoveredType, hosts)
	advice := "The others have got their names. Plan again to name the remaining machines."
	if interrupted {
		advice = "The run was interrupted. Some machines may have got their names. Plan again to name the rest."
	}
	diags.AddError(fmt.Sprintf("Could not name %s", found.Machines(len(problems))), strings.Join(lines, "\n")+"\n\n"+advice)
}

// claim claims one machine. It turns a panic into an error of this machine, because a panic would end the provider's process and
// all its operations.
func (d *discoveryImport) claim(ctx context.Context, id string, mark notes.Discovery) (err error) {
	defer routine.Recover(&err)
	return found.Claim(ctx, d.Site, id, mark)
}

// lookAgain lists the machines that are new after the planned ones were named, as the next refresh will. It sets pending, if that
// could not be planned.
func (d *discoveryImport) lookAgain(ctx context.Context, plan *discoveryModel, kept *private, diags *diag.Diagnostics) {
	now := *plan
	now.Pending = types.MapValueMust(types.StringType, nil)
	seen, err := d.survey(ctx, plan, plan)
	if err == nil {
		var quiet diag.Diagnostics // the plan has reported it
		now.decide(seen, plan, &quiet)
		kept.Survey = seen.News()
	} else {
		kept.Survey = nil // the machines in it have been named
		if _, detail := failure.Explain("", err); plan.Pending.IsUnknown() && !api.IsInterrupted(err) {
			framework.Show(diags, found.PendingUnread(detail))
		}
	}
	if plan.Pending.IsUnknown() {
		plan.Pending = now.Pending
	}
}

// restoreMarks writes the mark again into nodes of hosts from which another client has removed it.
func (d *discoveryImport) restoreMarks(ctx context.Context, state *discoveryModel, unmarked []string, diags *diag.Diagnostics) {
	for name, value := range state.Hosts.Elements() {
		id := hostID(value)
		if !slices.Contains(unmarked, id) {
			continue
		}
		framework.Show(diags, found.RestoreMark(ctx, d.Site, id, state.mark(name))...)
	}
}

// Read removes machines whose nodes are gone, updates those whose host was replaced by a new node, and lists new machines.
func (d *discoveryImport) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var state discoveryModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.Name})...)
	seen, err := d.survey(ctx, &state, &state)
	if err != nil {
		framework.Report(&resp.Diagnostics, "list discovered machines", err)
		return
	}
	hosts := map[string]attr.Value{}
	for name, value := range state.Hosts.Elements() {
		if id := seen.Replaced[name]; id != "" {
			hosts[name] = withID(value, id)
		} else if seen.Exists[hostID(value)] {
			hosts[name] = value
		}
	}
	switch {
	case state.Hosts.IsNull():
		state.importHosts(seen)
	case state.NameTemplate.IsNull():
		state.Hosts, state.Pending = types.MapValueMust(discoveredType, hosts), types.MapValueMust(types.StringType, nil)
	default:
		state.Hosts = types.MapValueMust(discoveredType, hosts)
		before := state.Hosts
		var quiet diag.Diagnostics // the plan reports it
		state.decide(seen, &state, &quiet)
		state.Hosts = before
	}
	kept.Survey = seen.News()
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Delete removes the resource from the state only. Nodes keep their names and marks, so that a new resource of this name finds them.
func (d *discoveryImport) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// ImportState imports the discovery with a name: all machines with its mark.
func (d *discoveryImport) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	name, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	framework.RecordImport(ctx, resp, name)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
}

// survey lists the discovered machines of the site. It does not read the inventories of machines in the state again.
func (d *discoveryImport) survey(ctx context.Context, m, state *discoveryModel) (*found.Survey, error) {
	held := map[string]string{}
	for name, value := range state.hosts() {
		held[hostID(value)] = name
	}
	return found.TakeSurvey(ctx, d.Site, m.Name.ValueString(), held)
}
