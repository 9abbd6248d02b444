package oneviewprofile

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// profilePath is the prefix of the URIs of server profiles.
const profilePath = "/rest/server-profiles/"

// profileName accepts names of server profiles. A filter of OneView cannot contain quotes.
var profileName = regexp.MustCompile(`^[^'"\s]([^'"]*[^'"\s])?$`)

func uriPattern(kind string) *regexp.Regexp {
	return regexp.MustCompile(`^/rest/` + regexp.QuoteMeta(kind) + `/[^/?#]+$`)
}

// ImportState finds the profile by its URI, or by the UUID, name, MAC or BMC address of its node.
func (o *oneviewProfile) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok || !o.configured(&resp.Diagnostics) {
		return
	}
	uri := id
	if !strings.HasPrefix(id, profilePath) {
		node, err := o.Site.Ironic.FindNode(ctx, id)
		if err != nil {
			framework.Report(&resp.Diagnostics, "import the server profile of node "+id, err)
			return
		}
		binding, err := sharing.BindingOf(node)
		if err == nil && binding.AppliedURI == "" {
			err = fmt.Errorf("node %s has no driver_info.applied_server_profile_uri: Ironic has applied no server profile to it",
				ironic.NodeLabel(node))
		}
		if err != nil {
			framework.Report(&resp.Diagnostics, "import the server profile of node "+id, err)
			return
		}
		uri = binding.AppliedURI
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("node_id"), node.UUID)...)
	}
	framework.RecordImport(ctx, resp, uri)
}

// findNode finds the node to which Ironic has applied an imported profile.
func (o *oneviewProfile) findNode(ctx context.Context, m *oneviewProfileModel) error {
	nodes, err := o.Site.Ironic.ListNodes(ctx, ironic.NodeFilter{})
	if err != nil {
		return err
	}
	for i := range nodes {
		if hasApplied(&nodes[i], m.ID.ValueString()) {
			m.NodeID = types.StringValue(nodes[i].UUID)
			return nil
		}
	}
	return fmt.Errorf("no node of this Ironic has it as driver_info.applied_server_profile_uri. Import only profiles that Ironic uses. " +
		"If a node has it from pre-allocation, run metal oneview migrate first")
}
