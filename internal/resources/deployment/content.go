package deployment

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
)

// content returns the attributes whose change rebuilds the node, with their names.
func (m *model) content() map[string]attr.Value {
	return map[string]attr.Value{
		"image": m.Image, "config_drive": m.ConfigDrive, "deploy_steps": m.DeploySteps, "capabilities": m.Capabilities,
		"traits": m.Traits, "root_device": m.RootDevice, "instance_info": m.InstanceInfo,
	}
}

// takeContent copies the named attributes of the content from another model.
func (m *model) takeContent(other *model, names map[string]bool) {
	if names["image"] {
		m.Image = other.Image
	}
	if names["config_drive"] {
		m.ConfigDrive = other.ConfigDrive
	}
	if names["deploy_steps"] {
		m.DeploySteps = other.DeploySteps
	}
	if names["capabilities"] {
		m.Capabilities = other.Capabilities
	}
	if names["traits"] {
		m.Traits = other.Traits
	}
	if names["root_device"] {
		m.RootDevice = other.RootDevice
	}
	if names["instance_info"] {
		m.InstanceInfo = other.InstanceInfo
	}
}

// recordsContent reports whether a planned state has other content than the state, or another trigger that deploys it again.
func (m *model) recordsContent(state *model) bool {
	was := state.content()
	for name, value := range m.content() {
		if !value.Equal(was[name]) {
			return true
		}
	}
	return !m.RebuildTriggers.Equal(state.RebuildTriggers)
}
