package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// namesKey is the key in private state of the names that the node had since it was deployed, besides the present one. The plan that
// renames a node cannot tell that its new name is going to reach a config drive: an allocation shows it after the apply.
const namesKey = "former_names"

// formerNames returns the former names of a node that was called was and is called now.
func formerNames(former []string, was, now string) []string {
	if was != "" && was != now {
		former = append(slices.Clone(former), was)
	}
	former = slices.DeleteFunc(slices.Clone(former), func(name string) bool { return name == now })
	slices.Sort(former)
	return slices.Compact(former)
}

// noteNames records the former names of a node in private state. deployed reports whether the machine was just deployed, under its
// present name.
func noteNames(ctx context.Context, before framework.GettablePrivate, after framework.SettablePrivate, node *ironic.Node, deployed bool) (diags diag.Diagnostics) {
	names := formerNames(readNames(ctx, before, &diags), readSight(ctx, before, &diags).Name, node.Name)
	if deployed || len(names) == 0 {
		return append(diags, after.SetKey(ctx, namesKey, nil)...)
	}
	text, _ := json.Marshal(names) // strings always marshal
	return append(diags, after.SetKey(ctx, namesKey, text)...)
}

// readNames returns the former names that noteNames has recorded.
func readNames(ctx context.Context, private framework.GettablePrivate, diags *diag.Diagnostics) (names []string) {
	text, problems := private.GetKey(ctx, namesKey)
	diags.Append(problems...)
	_ = json.Unmarshal(text, &names) // there may be none
	return names
}

// renamed returns the config drive with another name in the place of a former one.
func (m configDriveModel) renamed(former, name string) configDriveModel {
	for _, text := range []*types.String{&m.Hostname, &m.UserData} {
		if framework.IsSet(*text) {
			*text = types.StringValue(strings.ReplaceAll(text.ValueString(), former, name))
		}
	}
	for _, document := range []*jsontypes.Normalized{&m.MetaData, &m.NetworkData, &m.VendorData} {
		if framework.IsSet(*document) {
			*document = jsontypes.NewNormalizedValue(strings.ReplaceAll(document.ValueString(), former, name))
		}
	}
	return m
}

// keepName plans that the config drive stays as it is, if it would only follow a rename of the node, and nothing else deploys the machine.
func (p inPlace) keepName(ctx context.Context, diags *diag.Diagnostics) {
	drive, wanted := p.state.configDrive(ctx), p.plan.configDrive(ctx)
	if drive == nil || wanted == nil || p.plan.ConfigDrive.Equal(p.state.ConfigDrive) {
		return
	}
	kept := *p.plan
	kept.ConfigDrive = p.state.ConfigDrive
	if resumes, _ := p.resumes(); resumes || kept.redeploys(ctx, p.state, p.onChange) != same {
		return
	}
	former := slices.IndexFunc(p.names, func(name string) bool { return drive.renamed(name, p.seen.Name) == *wanted })
	if former < 0 {
		return
	}
	p.plan.ConfigDrive = p.state.ConfigDrive
	diags.AddAttributeWarning(path.Root("config_drive"), "Machine keeps its former name", fmt.Sprintf("Node %s was called %q when it was deployed. The configured config drive has the new name. "+
		"That alone rebuilds nothing: the machine keeps the former name. To rebuild it with the new name, which wipes its root disk, change rebuild_triggers.", p.label(), p.names[former]))
}
