package deployment

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// change says whether values of the configuration differ from those of the state.
type change int

const (
	same    change = iota
	differs        // certainly
	unclear        // something in them is not known yet
)

// compare compares a configured value with that of the state. A value with an unknown part is unclear, even if another part
// differs: Terraform plans again when everything is known, and that plan must not contradict this one.
func compare(ctx context.Context, configured, prior attr.Value) change {
	switch {
	case configured.Equal(prior):
		return same
	case framework.FullyKnown(ctx, configured):
		return differs
	}
	return unclear
}

// content returns the attributes whose change rebuilds the node, with their names.
func (m *model) content() map[string]attr.Value {
	return map[string]attr.Value{
		"image": m.Image, "config_drive": m.ConfigDrive, "deploy_steps": m.DeploySteps, "capabilities": m.Capabilities,
		"traits": m.Traits, "root_device": m.RootDevice, "instance_info": m.InstanceInfo,
	}
}

// contentChange compares all content.
func (m *model) contentChange(ctx context.Context, state *model) (result change) {
	prior := state.content()
	for name, value := range m.content() {
		result = max(result, compare(ctx, value, prior[name]))
	}
	return result
}

// sameContent reports whether two models deploy the same content. An unknown value counts as different.
func (m *model) sameContent(ctx context.Context, other *model) bool {
	return m.contentChange(ctx, other) == same
}

// redeploys says whether the difference between a plan and a state deploys the node anew. A machine that was adopted is deployed for
// a trigger only.
func (m *model) redeploys(ctx context.Context, state *model, onChange string) change {
	content := m.contentChange(ctx, state)
	if onChange == onChangeIgnore || state.adopted() || m.adopted() {
		content = same
	}
	return max(content, compare(ctx, m.RebuildTriggers, state.RebuildTriggers))
}

// onChangeOf returns on_change of a configuration or state, or the provider's default. It adds an error if that is not known.
func (d *deployment) onChangeOf(m *model, diags *diag.Diagnostics) string {
	for where, value := range []types.String{m.OnChange, d.OnChange} {
		if value.IsUnknown() {
			diags.AddAttributeError(path.Root("on_change"), "Value must be known during plan", fmt.Sprintf("on_change%s decides whether a change of content wipes a disk, "+
				"so the plan must know it. Set it to a value that does not depend on a resource.", [...]string{"", " of the provider block"}[where]))
			return onChangeIgnore
		}
		if !value.IsNull() {
			return value.ValueString()
		}
	}
	return onChangeRebuild
}

// keepContent plans the content of the state, for on_change = "ignore". An attribute that only one of the two sets stays as
// configured, because Terraform accepts no other planned value.
func (m *model) keepContent(state *model) {
	m.Image, m.ConfigDrive = unlessNull(m.Image, state.Image), unlessNull(m.ConfigDrive, state.ConfigDrive)
	m.DeploySteps, m.Capabilities = unlessNull(m.DeploySteps, state.DeploySteps), unlessNull(m.Capabilities, state.Capabilities)
	m.Traits, m.RootDevice = unlessNull(m.Traits, state.Traits), unlessNull(m.RootDevice, state.RootDevice)
	m.InstanceInfo = unlessNull(m.InstanceInfo, state.InstanceInfo)
}

// raise returns a counter of the state, raised by one for a change that is certain, and unknown for one that is not.
func raise(counter types.Int64, by change) types.Int64 {
	switch by {
	case differs:
		return types.Int64Value(counter.ValueInt64() + 1)
	case unclear:
		return types.Int64Unknown()
	case same:
	}
	return types.Int64Value(counter.ValueInt64())
}

// sight is what a plan needs to know of the node, as of the last read. It is kept in private state: a saved plan is planned again when
// it is applied, and the node may have changed since.
type sight struct {
	Name    string          `json:"name"`    // of the node
	Content string          `json:"content"` // digest of the provider's deployment that the node runs or is being deployed with; "" if there is none
	Boot    bootiso.Machine `json:"boot"`    // what the decision about a live ISO depends on
}

// sightKey is the key of the sight in private state.
const sightKey = "sight"

func writeSight(ctx context.Context, private framework.SettablePrivate, node *ironic.Node) diag.Diagnostics {
	text, _ := json.Marshal(sight{Name: node.Name, Content: provision.Content(node), Boot: provision.BootFacts(node)}) // it always marshals
	return private.SetKey(ctx, sightKey, text)
}

// readSight returns the sight that writeSight has stored; zero if there is none.
func readSight(ctx context.Context, private framework.GettablePrivate, diags *diag.Diagnostics) (s sight) {
	text, problems := private.GetKey(ctx, sightKey)
	diags.Append(problems...)
	_ = json.Unmarshal(text, &s) // a zero sight is fine if there is none
	return s
}
