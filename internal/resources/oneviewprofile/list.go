package oneviewprofile

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

var _ list.ListResourceWithConfigure = (*oneviewProfile)(nil)

// NewList returns the list resource metal_oneview_profile.
func NewList() list.ListResource { return newOneviewProfile() }

func (o *oneviewProfile) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest,
	resp *list.ListResourceSchemaResponse,
) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the server profiles that Ironic uses: those that a node has as " +
			"`driver_info.applied_server_profile_uri` and that exist in OneView.",
		Attributes: map[string]schema.Attribute{"name_regex": framework.NameRegexAttribute("profiles")},
	}
}

// used is a server profile and the node to which Ironic has applied it.
type used struct {
	profile *oneview.Profile
	node    *ironic.Node
}

// List sends a request for each page of profiles and of nodes, and with the resources one more for each node.
func (o *oneviewProfile) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var nameRegex types.String
	diags := req.Config.GetAttribute(ctx, path.Root("name_regex"), &nameRegex)
	if diags.HasError() || !o.configured(&diags) {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	names := framework.NamePattern(nameRegex)
	stream.Results = framework.Listing[used]{
		Doing: "list server profiles", Objects: framework.AtOnce(func() ([]*used, error) { return o.used(ctx) }),
		Chosen: func(u *used) bool { return names.MatchString(u.profile.Name) },
		Label:  func(u *used) (id, name string) { return u.profile.URI, u.profile.Name },
		Fill:   o.fill,
	}.Results(ctx, req)
}

func (o *oneviewProfile) used(ctx context.Context) (all []*used, err error) {
	profiles, err := o.Pool.OneView.ListProfiles(ctx, oneview.ProfileFilter{})
	if err != nil {
		return nil, err
	}
	nodes, err := o.Site.Ironic.ListNodes(ctx, ironic.NodeFilter{})
	for i := range nodes {
		at := slices.IndexFunc(profiles, func(p oneview.Profile) bool { return hasApplied(&nodes[i], p.URI) })
		if at >= 0 {
			all = append(all, &used{&profiles[at], &nodes[i]})
		}
	}
	return all, err
}

// hasApplied reports whether Ironic has applied a profile to a node.
func hasApplied(node *ironic.Node, uri string) bool {
	binding, err := sharing.BindingOf(node)
	return err == nil && binding.HardwareURI != "" && oneview.SameURI(binding.AppliedURI, uri)
}

// fill sets a listed profile, as an import and the refresh that follows it do.
func (o *oneviewProfile) fill(ctx context.Context, u *used, to *tfsdk.Resource) diag.Diagnostics {
	var m oneviewProfileModel
	diags := framework.Listed(ctx, to, u.profile.URI, &m)
	if diags.HasError() {
		return diags
	}
	holding, err := o.Pool.Inspect(ctx, u.node)
	if err != nil {
		framework.Report(&diags, "read server profile "+u.profile.URI, err)
		return diags
	}
	m.NodeID = types.StringValue(u.node.UUID)
	m.describe(u.profile)
	m.locate(u.profile, holding.Hardware)
	m.show(u.node, u.profile, holding, &diags)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
