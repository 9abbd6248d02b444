package deployment

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

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
	case interface{ ValueString() string }:
		return decide.Known(value.ValueString())
	case types.Set: // has no order
		elements := framework.StringSet(value)
		slices.Sort(elements)
		return decide.Known(strings.Join(elements, "\n"))
	}
	return decide.Known(value.String())
}

// plain returns a string.
func plain[T ~string](value types.String) decide.Value[T] {
	switch {
	case value.IsUnknown():
		return decide.Unknown[T]()
	case value.IsNull():
		return decide.Value[T]{}
	}
	return decide.Known(T(value.ValueString()))
}

// wish returns what a plan or state asks for. Power, protection and what is deployed are those of the configuration, which alone has
// write-only values and says what it leaves open.
func (d *deployment) wish(ctx context.Context, m, config *model, diags *diag.Diagnostics) deploy.Wish {
	deployed, problems := config.deployment(ctx)
	diags.Append(problems...)
	w := deploy.Wish{
		Node: plain[string](m.NodeID), Name: plain[string](config.InstanceName), Allocation: plain[string](m.AllocationID),
		Content: map[string]deploy.Text{},
		Rebuild: text(ctx, m.RebuildTriggers), Restart: text(ctx, m.RestartTriggers), Rescue: text(ctx, m.Rescue), VIFs: text(ctx, m.VIFs),
		Ports: m.vifs(),
		Power: plain[deploy.PowerState](config.PowerState), OffMode: plain[machine.OffMode](config.PowerOffMode),
		OnChange: plain[deploy.OnChange](config.OnChange), DefaultOnChange: plain[deploy.OnChange](d.OnChange),
		OnDestroy: plain[deploy.OnDestroy](m.OnDestroy), ReadyCheck: text(ctx, m.ReadyCheck), Quarantines: m.quarantines(),
		MaxNodes: m.mostNodes(), Deployment: deployed,
	}
	for name, value := range m.content() {
		w.Content[name] = text(ctx, value)
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

// wishOf returns the wish that a state has recorded.
func (d *deployment) wishOf(ctx context.Context, state *model, diags *diag.Diagnostics) deploy.Wish {
	return d.wish(ctx, state, state, diags)
}

// ignoresContent reports whether a refresh need not say what runs.
func (d *deployment) ignoresContent(m *model) bool {
	return deploy.Wish{OnChange: plain[deploy.OnChange](m.OnChange), DefaultOnChange: plain[deploy.OnChange](d.OnChange)}.IgnoresContent()
}

// seen returns what a state and its private state say. was is the wish that the state has recorded.
func seen(ctx context.Context, state *model, was deploy.Wish, kept *private) deploy.Seen {
	return deploy.Seen{
		Was: was, ID: state.ID.ValueString(), Instance: state.InstanceID.ValueString(), Label: state.ID.ValueString(), Now: time.Now(),
		State: ironic.State(state.ProvisionState.ValueString()), LastError: plain[string](state.LastError),
		Attempts: number(state.Attempts),
		Rebuilds: state.Rebuilds.ValueInt64(), Restarts: state.Restarts.ValueInt64(),
		Power: plain[deploy.PowerState](state.PowerState), Protected: state.Protected.ValueBool(), Name: plain[string](state.InstanceName),
		Boot:  state.bootStatus(ctx),
		Ready: flag(state.Ready), Unbegun: kept.Unbegun,
		Past: kept.Past, Names: kept.Names, Sight: kept.Sight, Runs: kept.Runs, Last: kept.Last,
		Restart: kept.Restart,
	}
}

func number(value types.Int64) decide.Value[int64] {
	return decide.Value[int64]{V: value.ValueInt64(), Set: framework.IsSet(value), Unknown: value.IsUnknown()}
}

// bootStatus returns boot_status.
func (m *model) bootStatus(ctx context.Context) (status decide.Value[bootiso.Status]) {
	var s bootStatusModel
	if !framework.IsSet(m.BootStatus) || m.BootStatus.As(ctx, &s, basetypes.ObjectAsOptions{}).HasError() {
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
	m.Rebuilds, m.Restarts, m.BootStatus, m.Ready = toInt64(f.Rebuilds), toInt64(f.Restarts), showBoot(ctx, f.Boot), toBool(f.Ready)
	if f.Fresh {
		if state != nil {
			m.ID, m.NodeName, m.InstanceID = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		}
		return
	}
	m.LastError, m.Attempts, m.ProvisionState = toString(f.LastError), toInt64(f.Attempts), toString(f.State)
	if config.PowerState.IsNull() {
		m.PowerState = toString(f.Power)
	}
	if config.Protected.IsNull() {
		m.Protected = state.Protected
	}
	if config.InstanceName.IsNull() {
		m.InstanceName = state.InstanceName
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

func toInt64(v decide.Value[int64]) types.Int64 {
	switch {
	case v.Unknown:
		return types.Int64Unknown()
	case v.Set:
		return types.Int64Value(v.V)
	}
	return types.Int64Null()
}

func toString[T ~string](v decide.Value[T]) types.String {
	switch {
	case v.Unknown:
		return types.StringUnknown()
	case v.Set:
		return types.StringValue(string(v.V))
	}
	return types.StringNull()
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
