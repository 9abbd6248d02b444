package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

// Read refreshes the state, and removes the resource if the node does not run its deployment any more.
func (d *deployment) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	twice := deploy.DeploymentInState(d.Site, state.ID.ValueString())
	node, err := d.Site.Ironic.NodeForRefresh(ctx, state.ID.ValueString())
	if d.RefuseHidden(ctx, req.Private, "node "+state.machine(), func(context.Context) error { return err }, &resp.Diagnostics) {
		return
	}
	now := lost.Sight{Node: node, Err: err, Seen: kept.Updated, Instance: state.InstanceID.ValueString()}
	if !state.isImported() && d.KeepsLost(ctx, resp.Private, state.lostRecord(), now, &resp.Diagnostics) {
		return
	}
	if api.IsNotFound(err) {
		d.warnGone(&resp.Diagnostics, state.ID.ValueString())
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		framework.Report(&resp.Diagnostics, "read the deployment of node "+state.machine(), err)
		return
	}
	if twice {
		framework.Show(&resp.Diagnostics, twinInState(node))
	}
	imported := state.isImported()
	if imported && node.InstanceUUID == "" {
		reportUnreserved(&resp.Diagnostics, node, node.UUID)
		return
	}
	if imported {
		state.importNode(node)
	}
	if reason := deploy.LossReason(node, state.InstanceID.ValueString(), state.AllocationID.ValueString()); reason != "" {
		framework.Show(&resp.Diagnostics, deploy.Leaves(d.Site, node, reason))
		resp.State.RemoveResource(ctx)
		return
	}
	before, was := *kept, state
	d.readContent(ctx, &state, node, kept, imported)
	d.readVIFs(ctx, &state, node, &resp.Diagnostics)
	state.readBoot(ctx, node, before.Last, imported)
	kept.see(node, false)
	kept.Past = before.Past.AfterRead(node, imported)
	d.readReady(ctx, &state, node, before.Runs)
	state.volatile(node)
	kept.begun(node)
	state.readRescue(node, &resp.Diagnostics)
	state.Protected = framework.QuietFlag(state.Protected, node.Protected)
	if imported || !framework.EqualModels(&was, &state) || lost.IsOther(kept.Updated, node, state.InstanceID.ValueString()) {
		kept.Updated = lost.Seen(kept.Updated, node)
	}
	framework.Show(&resp.Diagnostics, machine.WarnHealth(node)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	store()
	d.noteUnchanged(ctx, &state, resp.Private, &resp.Diagnostics)
}

// readContent reads what runs on the machine, and notes its footprint if there is none.
func (d *deployment) readContent(ctx context.Context, state *model, node *ironic.Node, kept *private, imported bool) {
	switch {
	case !deploy.RunsInstance(node), d.ignoresContent(state):
	case imported:
		state.importImage(ctx, node)
	case kept.Runs.Image == "" && d.runs(ctx, state, node): // the last run has deployed it without storing the footprint
		kept.Runs = deploy.FootprintOf(node)
	case kept.Runs.OtherImage(node):
		state.showImage(ctx, node)
	}
}

// warnGone says that a deployment leaves the state, because Ironic does not have its node.
func (d *deployment) warnGone(diags *diag.Diagnostics, id string) {
	if d.Site.Ironic.Project() == "" {
		framework.Show(diags, deploy.Gone(id, "does not exist in Ironic any more"))
	}
	framework.WarnUnseen(diags, d.Site.Ironic.Project(), "The deployment of node "+id)
}

// runs reports whether the node's last deployment, finished or in progress, has the content of a state or configuration.
func (d *deployment) runs(ctx context.Context, m *model, node *ironic.Node) bool {
	wanted, diags := m.deployment(ctx)
	return !diags.HasError() && wanted.DeployedWith(node)
}

var _ list.ListResourceWithConfigure = (*deployment)(nil)

// NewList returns the list resource metal_deployment.
func NewList() list.ListResource { return &deployment{} }

func (d *deployment) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the deployments: the nodes of Ironic that are reserved and run something, or may run something, and " +
			"match all given filters.",
		Attributes: framework.NodeFilterAttributes("deployments on nodes", nil),
	}
}

// List streams the deployed nodes. Without their resources, it asks Ironic for few fields.
func (d *deployment) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var f framework.NodeFilter
	if diags := req.Config.Get(ctx, &f); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	asked, names, reserved := f.Filter(), framework.NamePattern(f.NameRegex), true
	asked.Associated = &reserved
	var fields []string
	if !req.IncludeResource {
		fields = []string{"uuid", "name", "provision_state"}
	}
	const all = 0 // Ironic cannot count the deployed nodes
	stream.Results = framework.Listing[ironic.Node]{
		Doing: "list deployments", Objects: d.Site.Ironic.StreamNodes(ctx, asked, all, fields...),
		Chosen: func(n *ironic.Node) bool { return deploy.IsDeployed(n) && names.MatchString(n.Name) },
		Label:  func(n *ironic.Node) (id, name string) { return n.UUID, n.Name },
		Fill:   d.fill,
	}.Results(ctx, req)
}

func (d *deployment) fill(ctx context.Context, node *ironic.Node, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, node.UUID, &m)
	if diags.HasError() {
		return diags
	}
	m.importNode(node)
	if deploy.RunsInstance(node) && !d.ignoresContent(&m) {
		m.importImage(ctx, node)
	}
	m.readBoot(ctx, node, deploy.Wanted{}, true)
	m.volatile(node)
	m.Protected = framework.QuietFlag(m.Protected, node.Protected)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}

func twinInState(node *ironic.Node) decide.Notice {
	return deploy.Twin(node, "This state has two deployments of the node. Destroying either of them undeploys the machine. Take one of "+
		"them out of the state with terraform state rm, and then out of the configuration.")
}
