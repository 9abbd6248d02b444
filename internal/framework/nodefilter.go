package framework

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// NodeFilter has the attributes by which users select nodes. A model embeds it.
type NodeFilter struct {
	NameRegex           types.String `tfsdk:"name_regex"`
	ProvisionState      types.String `tfsdk:"provision_state"`
	ResourceClass       types.String `tfsdk:"resource_class"`
	ConductorGroup      types.String `tfsdk:"conductor_group"`
	Owner               types.String `tfsdk:"owner"`
	Lessee              types.String `tfsdk:"lessee"`
	Project             types.String `tfsdk:"project"`
	Driver              types.String `tfsdk:"driver"`
	Fault               types.String `tfsdk:"fault"`
	Shard               types.String `tfsdk:"shard"`
	DescriptionContains types.String `tfsdk:"description_contains"`
	ChassisUUID         types.String `tfsdk:"chassis_uuid"`
	Maintenance         types.Bool   `tfsdk:"maintenance"`
	Retired             types.Bool   `tfsdk:"retired"`
}

// NameRegexDescription is the description of name_regex. things are what it selects, such as "hosts".
func NameRegexDescription(things string) string {
	return "Only " + things + " whose name matches this regular expression (RE2). It also matches a part of the name; use `^` and `$` for the whole name."
}

// NodeFilterTexts returns the descriptions of the other string attributes of NodeFilter.
func NodeFilterTexts(things string) map[string]string {
	described := map[string]string{
		"provision_state": "in this provision state, such as `available`.", "resource_class": "of this resource class.",
		"conductor_group": "of this conductor group.", "owner": "of this owner.", "lessee": "with this lessee. Needs API 1.65.",
		"project": "whose owner or lessee is this project. Needs API 1.65.", "driver": "with this driver.",
		"fault": "with this fault, such as `power failure`.", "shard": "of this shard. Needs API 1.82.",
		"description_contains": "whose description contains this text.", "chassis_uuid": "of the chassis with this UUID.",
	}
	for name, description := range described {
		described[name] = "Only " + things + " " + description
	}
	return described
}

// NodeFilterFlags returns the descriptions of the boolean attributes of NodeFilter.
func NodeFilterFlags(things string) map[string]string {
	described := map[string]string{"maintenance": "in maintenance", "retired": "retired"}
	for name, description := range described {
		described[name] = OnlyIf(things, description)
	}
	return described
}

// OnlyIf describes an attribute that selects the things that are something, or those that are not.
func OnlyIf(things, are string) string {
	return "Only " + things + " that are " + are + " (`true`) or are not (`false`)."
}

// IfReserved continues OnlyIf for the attribute "associated".
const IfReserved = "reserved by an allocation or instance"

// Filter returns the filters that Ironic applies.
func (f *NodeFilter) Filter() ironic.NodeFilter {
	return ironic.NodeFilter{
		ProvisionState: f.ProvisionState.ValueString(), ResourceClass: f.ResourceClass.ValueString(), ConductorGroup: f.ConductorGroup.ValueString(),
		Owner: f.Owner.ValueString(), Lessee: f.Lessee.ValueString(), Project: f.Project.ValueString(), Driver: f.Driver.ValueString(),
		Fault: f.Fault.ValueString(), Shard: f.Shard.ValueString(), DescriptionContains: f.DescriptionContains.ValueString(),
		ChassisUUID: f.ChassisUUID.ValueString(), Maintenance: f.Maintenance.ValueBoolPointer(), Retired: f.Retired.ValueBoolPointer(),
	}
}

// NamePattern returns the expression of name_regex, which a validator has accepted. It matches everything if there is none.
func NamePattern(nameRegex types.String) *regexp.Regexp {
	return regexp.MustCompile(nameRegex.ValueString())
}
