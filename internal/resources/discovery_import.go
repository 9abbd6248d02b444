package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var (
	_ resource.ResourceWithConfigure      = (*discoveryImport)(nil)
	_ resource.ResourceWithIdentity       = (*discoveryImport)(nil)
	_ resource.ResourceWithImportState    = (*discoveryImport)(nil)
	_ resource.ResourceWithModifyPlan     = (*discoveryImport)(nil)
	_ resource.ResourceWithValidateConfig = (*discoveryImport)(nil)
)

const (
	// surveyKey is where private state keeps what the last refresh has seen of new machines: plan and apply decide by the
	// same, though machines may come in between.
	surveyKey = "survey"
	// claimers is how many machines are named at the same time.
	claimers = 8
)

// NewDiscoveryImport returns metal_discovery_import.
func NewDiscoveryImport() resource.Resource { return &discoveryImport{} }

type discoveryImport struct{ withClient }

// Metadata names the resource.
func (d *discoveryImport) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_discovery_import"
}

// IdentitySchema describes its identity.
func (d *discoveryImport) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("owner, which is its name,")
}

// ModifyPlan decides which machines are taken, and under which names: during plan, so that the hosts are known to whatever
// is made of them.
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
	if !d.known() {
		resp.Diagnostics.AddError("Discovery needs Ironic during plan", "The provider's configuration is not known yet, so nobody can say which machines there are. "+
			"Apply what it depends on first, with -target, or give the value directly.")
		return
	}
	if !config.fullyKnown(ctx) {
		plan.Hosts, plan.Pending = types.MapUnknown(discoveredType), types.MapUnknown(types.StringType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	if state != nil && !plan.Name.Equal(state.Name) { // a replacement, for which Terraform plans once more, without a state
		plan.Hosts, plan.Pending = types.MapUnknown(discoveredType), types.MapUnknown(types.StringType)
		state.warnLeaving(&resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	text, _ := req.Private.GetKey(ctx, surveyKey)
	seen := parseSurvey(text)
	remembered := seen != nil
	if !remembered {
		var err error
		if seen, err = d.survey(ctx, &plan, state); err != nil {
			report(&resp.Diagnostics, "look for discovered machines", err)
			return
		}
	}
	plan.decide(ctx, seen, state, &resp.Diagnostics)
	if !remembered && (state == nil || !plan.Pending.Equal(state.Pending)) {
		plan.Pending = types.MapUnknown(types.StringType) // Terraform plans again during apply, and reasons change by the second
	}
	plan.ID = plan.Name
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// warnLeaving warns of the machines that another name leaves behind.
func (m *discoveryModel) warnLeaving(diags *diag.Diagnostics) {
	if n := len(m.Hosts.Elements()); n > 0 {
		diags.AddAttributeWarning(path.Root("name"), fmt.Sprintf("%d machines leave hosts", n), fmt.Sprintf("They stay marked as those of %s. What is made of hosts for each of them is destroyed, "+
			"and a metal_host deletes its node. To keep them, leave name as it is: the template may change without it.", m.Name.ValueString()))
	}
}

// decide sets hosts and pending.
func (m *discoveryModel) decide(ctx context.Context, seen *ironic.Survey, state *discoveryModel, diags *diag.Diagnostics) {
	rules, problems := m.rules(ctx)
	diags.Append(problems...)
	if problems.HasError() {
		return
	}
	decided := rules.Decide(seen.All())
	if decided.Err != nil {
		diags.AddAttributeError(path.Root("on_collision"), "Two machines would have the same name", decided.Err.Error()+".")
		return
	}
	hosts := map[string]attr.Value{}
	if state != nil && isSet(state.Hosts) {
		for name, value := range state.Hosts.Elements() {
			hosts[name] = value
		}
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
	var lines []string
	for _, h := range seen.Hosts {
		if reason := decided.Pending[h.ID]; reason != "" && !held[h.ID] {
			pending[h.ID] = types.StringValue(reason)
			lines = append(lines, h.Describe()+": "+reason)
		}
	}
	m.Pending = types.MapValueMust(types.StringType, pending)
	if len(lines) > 0 {
		diags.AddAttributeWarning(path.Root("pending"), "Machines are not taken", describePending(lines))
	}
}

// describePending lists machines that are not taken, the first few.
func describePending(lines []string) string {
	const few = 10
	slices.Sort(lines)
	if len(lines) > few {
		lines = append(lines[:few], fmt.Sprintf("and %d more, see the attribute pending", len(lines)-few))
	}
	return strings.Join(lines, "\n")
}

// hostID is the node UUID of a machine in hosts.
func hostID(value attr.Value) string {
	object, _ := value.(types.Object)
	id, _ := object.Attributes()["id"].(types.String)
	return id.ValueString()
}

// withID is a machine in hosts whose node is another one now.
func withID(value attr.Value, id string) attr.Value {
	object, _ := value.(types.Object)
	facts := object.Attributes()
	facts["id"] = types.StringValue(id)
	return types.ObjectValueMust(discoveredType.AttrTypes, facts)
}

// Create names the planned machines.
func (d *discoveryImport) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer d.finish(ctx, &resp.Diagnostics)
	var plan discoveryModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	d.settle(ctx, &plan, nil, &resp.Diagnostics)
	d.lookAgain(ctx, &plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Update names the machines that have come.
func (d *discoveryImport) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer d.finish(ctx, &resp.Diagnostics)
	var plan, state discoveryModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	d.settle(ctx, &plan, &state, &resp.Diagnostics)
	d.lookAgain(ctx, &plan, &resp.Diagnostics)
	text, _ := req.Private.GetKey(ctx, surveyKey)
	if seen := parseSurvey(text); seen != nil {
		d.restoreMarks(ctx, &state, seen.Unmarked, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, surveyKey, nil)...) // what it says is done
}

// settle claims the machines that are new in a plan. Those that are not to be had are named in an error, and left out of
// the plan's hosts, so that the state says what is.
func (d *discoveryImport) settle(ctx context.Context, plan, state *discoveryModel, diags *diag.Diagnostics) {
	hosts := plan.Hosts.Elements()
	var had map[string]attr.Value
	if state != nil {
		had = state.Hosts.Elements()
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, claimers)
	problems := map[string]error{}
	for name, value := range hosts {
		if _, held := had[name]; held {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := d.claim(ctx, hostID(value), plan.mark(ctx, name)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				problems[name] = err
			}
		})
	}
	wg.Wait()
	if len(problems) == 0 {
		return
	}
	var lines []string
	interrupted := false
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		interrupted = interrupted || ironic.IsInterrupted(problems[name])
		_, detail := ironic.Explain("", problems[name])
		lines = append(lines, fmt.Sprintf("%s (node %s): %s", name, hostID(hosts[name]), detail))
		delete(hosts, name)
	}
	plan.Hosts = types.MapValueMust(discoveredType, hosts)
	advice := "The others are named. Plan again: what is still there is proposed anew."
	if interrupted {
		advice = "The run was interrupted. What is named is named; plan again for the rest."
	}
	diags.AddError(fmt.Sprintf("%d machines could not be named", len(problems)), strings.Join(lines, "\n")+"\n\n"+advice)
}

// claim claims one machine. That it panics is the problem of this machine, not the end of all that the provider is doing.
func (d *discoveryImport) claim(ctx context.Context, id string, mark ironic.Discovery) (err error) {
	defer func() {
		if r := recover(); r != nil {
			tflog.Error(ctx, "panic in the provider", map[string]any{"panic": fmt.Sprint(r), "stack": string(debug.Stack())})
			err = fmt.Errorf("the provider has a bug, it panicked: %v. Please report this with the stack trace from the log (TF_LOG=ERROR)", r)
		}
	}()
	return d.client.ClaimDiscovered(ctx, id, mark)
}

// lookAgain sets a pending that could not be planned to what is not taken now, after the planned machines were named.
func (d *discoveryImport) lookAgain(ctx context.Context, plan *discoveryModel, diags *diag.Diagnostics) {
	if !plan.Pending.IsUnknown() {
		return
	}
	now := *plan
	now.Pending = types.MapValueMust(types.StringType, nil)
	seen, err := d.survey(ctx, plan, plan)
	switch {
	case err == nil:
		var quiet diag.Diagnostics // the plan has said it
		now.decide(ctx, seen, plan, &quiet)
	case !ironic.IsInterrupted(err):
		_, detail := ironic.Explain("", err)
		diags.AddAttributeWarning(path.Root("pending"), "Nobody knows which machines are not taken", "The next refresh looks again: "+detail)
	}
	plan.Pending = now.Pending
}

// restoreMarks gives back the marks that others have taken away from machines of ours.
func (d *discoveryImport) restoreMarks(ctx context.Context, state *discoveryModel, unmarked []string, diags *diag.Diagnostics) {
	for name, value := range state.Hosts.Elements() {
		id := hostID(value)
		if !slices.Contains(unmarked, id) {
			continue
		}
		if err := d.client.MarkDiscovered(ctx, id, state.mark(ctx, name)); err != nil && !ironic.IsNotFound(err) {
			diags.AddWarning("A discovered host has lost its mark", fmt.Sprintf("It could not be written into %s again: %v.", name, err))
		}
	}
}

// Read drops machines that are gone, follows those whose host was replaced to their new node, and looks which have come.
func (d *discoveryImport) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state discoveryModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.Name})...)
	seen, err := d.survey(ctx, &state, &state)
	if err != nil {
		report(&resp.Diagnostics, "look for discovered machines", err)
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
	imported := state.Hosts.IsNull()
	if imported {
		for _, h := range seen.Hosts {
			if h.Owner == state.Name.ValueString() {
				hosts[h.OwnerName] = discoveredValue(h)
			}
		}
	}
	state.Hosts = types.MapValueMust(discoveredType, hosts)
	for name, now := range seen.Renamed {
		resp.Diagnostics.AddWarning("A discovered host was renamed", fmt.Sprintf("%s is called %q in Ironic now. The name that it was given here stays its key.", name, now))
	}
	if imported || state.NameTemplate.IsNull() {
		state.Pending = types.MapValueMust(types.StringType, nil)
	} else {
		before := state.Hosts
		var quiet diag.Diagnostics // the plan says it
		state.decide(ctx, seen, &state, &quiet)
		state.Hosts = before
	}
	text, err := json.Marshal(seen)
	if err != nil {
		resp.Diagnostics.AddError("The provider has a bug", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, surveyKey, text)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Delete forgets the machines: nodes, names and marks stay, and another resource of this name takes them over.
func (d *discoveryImport) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

// ImportState takes over the machines of a name.
func (d *discoveryImport) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	name, ok := importID(ctx, req, resp)
	if !ok {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), name)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: types.StringValue(name)})...)
}

// survey looks at the site. Of machines that the state holds already, nothing is read again.
func (d *discoveryImport) survey(ctx context.Context, m, state *discoveryModel) (*ironic.Survey, error) {
	held := map[string]string{}
	if state != nil {
		for name, value := range state.Hosts.Elements() {
			held[hostID(value)] = name
		}
	}
	return d.client.Survey(ctx, m.Name.ValueString(), held)
}

func parseSurvey(text []byte) *ironic.Survey {
	var s ironic.Survey
	if len(text) == 0 || json.Unmarshal(text, &s) != nil {
		return nil
	}
	return &s
}
