package framework

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// ReadFrom reads an object of a collection for a resource's Read. It returns nil if there is nothing to refresh: the object does not
// exist, so the resource leaves the state, or the request has failed, which it reports.
func ReadFrom[T any](ctx context.Context, site *machine.Site, in ironic.Collection, id, label string, resp *resource.ReadResponse) *T {
	found, err := ironic.ReadIn[T](ctx, site.Ironic, in, id)
	switch {
	case ironic.IsNotFound(err):
		resp.State.RemoveResource(ctx)
		return nil
	case err != nil:
		Report(&resp.Diagnostics, "read "+label, err)
		return nil
	}
	return found
}

// DeleteFrom deletes an object of a collection for a resource's Delete. It leaves an object that another resource of the same run has
// taken over.
func DeleteFrom(ctx context.Context, site *machine.Site, in ironic.Collection, id, label string, diags *diag.Diagnostics) {
	if site.Run.HasTakenOver(marks.MarkCreation, id) {
		WarnKept(diags, label)
		return
	}
	if err := site.Ironic.DeleteIn(ctx, in, id); err != nil {
		ReportUndone(diags, "delete "+label, err)
	}
}
