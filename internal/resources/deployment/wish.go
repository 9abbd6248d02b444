package deployment

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// text returns an attribute as text, to compare it with another one.
func text(ctx context.Context, value attr.Value) deploy.Text {
	switch {
	case value.IsNull():
		return deploy.Text{}
	case !framework.FullyKnown(ctx, value):
		return decide.Unknown[string]()
	}
	switch value := value.(type) {
	case framework.JSON:
		return decide.Known(value.Spelling())
	case interface{ ValueString() string }:
		return decide.Known(value.ValueString())
	case types.Set: // has no order
		elements := framework.StringSet(value)
		slices.Sort(elements)
		return decide.Known(strings.Join(elements, "\n"))
	}
	return decide.Known(value.String())
}

// wish returns what a plan or state asks for. Power, protection and what is deployed are those of the configuration, which alone has
// write-only values and says what it leaves open.
func (d *deployment) wish(ctx context.Context, m, config *model, diags *diag.Diagnostics) deploy.Wish {
	deployed, problems := config.deployment(ctx)
	diags.Append(problems...)
	w := deploy.Wish{
		Node: framework.TextOf[string](m.NodeID), Name: framework.TextOf[string](config.InstanceName),
		Allocation: framework.TextOf[string](m.AllocationID),
		Content:    deployed.Texts(), Address: deployed.Image.Address(),
		Rebuild: text(ctx, m.RebuildTriggers), Restart: text(ctx, m.RestartTriggers), Rescue: text(ctx, m.Rescue),
		VIFs:  text(ctx, m.VIFs),
		Ports: m.vifs(),
		Power: framework.TextOf[deploy.PowerState](config.PowerState), OffMode: framework.TextOf[machine.OffMode](config.PowerOffMode),
		OnChange: framework.TextOf[deploy.OnChange](config.OnChange), DefaultOnChange: framework.TextOf[deploy.OnChange](d.OnChange),
		OnDestroy: framework.TextOf[deploy.OnDestroy](m.OnDestroy), ReadyCheck: text(ctx, m.ReadyCheck), Quarantines: m.quarantines(),
		MaxNodes: m.mostNodes(), Tries: m.tries(), Deployment: deployed,
	}
	for name, value := range m.content() {
		if !framework.FullyKnown(ctx, value) {
			w.Content[name] = decide.Unknown[string]()
		}
	}
	if !framework.FullyKnown(ctx, m.Image) {
		w.Address = decide.Unknown[string]()
	}
	if framework.IsSet(config.Protected) {
		w.Protected = decide.Known(config.Protected.ValueBool())
	}
	if drive := m.configDrive(ctx); drive != nil {
		w.Drive = map[string]deploy.Text{}
		for name, part := range m.ConfigDrive.Attributes() {
			w.Drive[name] = text(ctx, part)
		}
	}
	if drive := config.configDrive(ctx); drive != nil && config != m {
		w.Hidden = framework.IsSet(drive.UserDataWOVersion) && drive.UserDataWO.IsNull() ||
			framework.IsSet(drive.MetaDataWOVersion) && drive.MetaDataWO.IsNull()
	}
	if iso := m.liveISO(ctx); iso != nil {
		w.LiveISO = decide.Known(deploy.LiveISO{Want: iso.Want(), Parts: map[string]deploy.Text{}})
		for name, part := range m.LiveISO.Attributes() {
			w.LiveISO.V.Parts[name] = text(ctx, part)
		}
	}
	w.LiveISO.Unknown = m.LiveISO.IsUnknown()
	w.Adopt = m.Adopt.ValueBool() || m.Adopt.IsUnknown() && m.Image.IsNull() && m.LiveISO.IsNull()
	w.AdoptOpen = m.Adopt.IsUnknown() && !w.Adopt && !framework.IsSet(m.Image) && !framework.IsSet(m.LiveISO)
	return w
}

func (d *deployment) wishOf(ctx context.Context, state *model, diags *diag.Diagnostics) deploy.Wish {
	return d.wish(ctx, state, state, diags)
}

// ignoresContent reports whether a refresh need not say what runs.
func (d *deployment) ignoresContent(m *model) bool {
	return deploy.Wish{
		OnChange:        framework.TextOf[deploy.OnChange](m.OnChange),
		DefaultOnChange: framework.TextOf[deploy.OnChange](d.OnChange),
	}.IgnoresContent()
}

// seen returns what a state and its private state say. was is the wish that the state has recorded.
func seen(ctx context.Context, state *model, was deploy.Wish, kept *private) deploy.Seen {
	return deploy.Seen{
		Was: was, ID: state.ID.ValueString(), Instance: state.InstanceID.ValueString(), Label: state.ID.ValueString(), Now: time.Now(),
		State: ironic.State(state.ProvisionState.ValueString()), LastError: framework.TextOf[string](state.LastError),
		Attempts: framework.NumberOf(state.Attempts),
		Rebuilds: state.Rebuilds.ValueInt64(), Restarts: state.Restarts.ValueInt64(),
		Power: framework.TextOf[deploy.PowerState](state.PowerState), Protected: state.Protected.ValueBool(),
		Name:  framework.TextOf[string](state.InstanceName),
		Boot:  state.bootStatus(ctx),
		Ready: framework.FlagOf(state.Ready), Unbegun: kept.Unbegun,
		Past: kept.Past, Names: kept.Names, Sight: kept.Sight, Runs: kept.Runs, Last: kept.Last,
		Restart: kept.Restart,
	}
}

func (m *model) bootStatus(ctx context.Context) (status decide.Value[bootiso.Status]) {
	s := framework.Decoded[bootStatusModel](ctx, m.BootStatus)
	if s == nil {
		return status
	}
	status = decide.Known(bootiso.Status{Stale: s.Stale.ValueBool(), Action: bootiso.Action(s.Action.ValueString())})
	s.Obsolete.ElementsAs(ctx, &status.V.Obsolete, false) // the schema says that they are strings
	return status
}

// show copies into a planned model what a plan makes of it. asked is the wish of the configuration.
func (m *model) show(ctx context.Context, config, state *model, asked deploy.Wish, plan deploy.Plan) {
	f := plan.Forecast
	if m.Restores = types.Int64Null(); state != nil && !f.Fresh {
		m.Restores = state.Restores
	}
	m.keepAsked(ctx, state, asked, f.Wish)
	m.keepSpelling(ctx, state)
	m.Rebuilds, m.Restarts = framework.NumberValue(f.Rebuilds), framework.NumberValue(f.Restarts)
	m.BootStatus, m.Ready = showBoot(ctx, f.Boot), framework.FlagValue(f.Ready)
	if f.Fresh {
		m.showNew(config)
		if state != nil {
			m.ID, m.NodeName, m.InstanceID = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		}
		return
	}
	m.LastError, m.Attempts = framework.TextValue(f.LastError), framework.NumberValue(f.Attempts)
	m.ProvisionState = framework.TextValue(f.State)
	switch {
	case m.LastError.IsUnknown():
		m.Failure = unknownFailure
	case m.LastError.Equal(state.LastError):
		m.Failure = state.Failure
	default:
		m.Failure = types.ObjectNull(framework.FailureTypes())
	}
	if config.PowerState.IsNull() {
		m.PowerState = framework.TextValue(f.Power)
	}
	if config.Protected.IsNull() {
		m.Protected = state.Protected
	}
	if config.InstanceName.IsNull() {
		m.InstanceName = state.InstanceName
	}
}

// showNew plans what a new deployment does not have: a plan has no line for null. What runs on an adopted machine is not known yet.
func (m *model) showNew(config *model) {
	if m.adopted() || m.Adopt.IsUnknown() {
		return
	}
	m.LastError, m.Failure = types.StringNull(), types.ObjectNull(framework.FailureTypes())
	if config.Protected.IsNull() {
		m.Protected = types.BoolNull()
	}
	if config.InstanceName.IsNull() && config.InstanceInfo.IsNull() { // else Ironic may take the name from display_name
		m.InstanceName = types.StringNull()
	}
}

// keepAsked copies the values of the state that the plan keeps though the configuration has others.
func (m *model) keepAsked(ctx context.Context, state *model, asked, kept deploy.Wish) {
	names := slices.DeleteFunc(deploy.ContentNames(), func(name string) bool { return kept.Content[name] == asked.Content[name] })
	if m.takeContent(state, names); kept.Node != asked.Node {
		m.NodeID = state.NodeID
	}
	if kept.Allocation != asked.Allocation {
		m.AllocationID = state.AllocationID
	}
	if kept.Rebuild != asked.Rebuild {
		m.RebuildTriggers = state.RebuildTriggers
	}
	if kept.Restart != asked.Restart {
		m.RestartTriggers = state.RestartTriggers
	}
	if asked.LiveISO.Unknown && !kept.LiveISO.Unknown {
		if kept.LiveISO.Set { // Terraform accepts no null for what the configuration may set
			m.LiveISO = state.LiveISO
		}
		return
	}
	parts := m.LiveISO.Attributes()
	for name, value := range kept.LiveISO.V.Parts {
		if value != asked.LiveISO.V.Parts[name] {
			parts[name] = state.LiveISO.Attributes()[name]
		}
	}
	if kept.LiveISO.Set {
		m.LiveISO = types.ObjectValueMust(m.LiveISO.AttributeTypes(ctx), parts)
	}
}

// keepSpelling copies content of the state that only its spelling tells from that of the plan.
func (m *model) keepSpelling(ctx context.Context, state *model) {
	if state == nil {
		return
	}
	asked, _ := m.deployment(ctx)
	was, _ := state.deployment(ctx)
	values := m.content()
	m.takeContent(state, slices.DeleteFunc(asked.Alike(was), func(name string) bool { return !framework.FullyKnown(ctx, values[name]) }))
}

func showBoot(ctx context.Context, v decide.Value[bootiso.Status]) types.Object {
	switch {
	case v.Unknown:
		return types.ObjectUnknown(bootStatusTypes)
	case v.Set:
		return bootStatus(ctx, v.V)
	}
	return types.ObjectNull(bootStatusTypes)
}

// noteUnchanged records in private state that the returned state needs no change, if so: as long as the configuration is the one that was
// applied last, the plan is empty.
func (d *deployment) noteUnchanged(ctx context.Context, state *model, noted framework.PrivateState, diags *diag.Diagnostics) {
	if diags.HasError() || d.Turns(ctx, state.Rollout).Group != "" { // each plan compares the members of a group
		return
	}
	was, kept := d.wishOf(ctx, state, diags), framework.LoadPrivate[private](ctx, noted)
	now := seen(ctx, state, was, &kept)
	open := was // the state does not tell whether the configuration asks for a machine that is off
	open.Power = decide.Value[deploy.PowerState]{}
	if deploy.Decide(was, now).Empty(now) && (was.ReadyCheck.IsNull() || deploy.Decide(open, now).Empty(now)) {
		diags.Append(framework.NothingToDecide(ctx, noted)...)
	}
}
