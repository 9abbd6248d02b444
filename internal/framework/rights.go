package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// rightsKey is the key in private state of the least rights with which the resource was seen. The server writes it.
const rightsKey = "rights"

// WithRights returns the private state of a resource that was just seen by a user with the given rights; nil: unknown. Rights that cover the
// recorded ones change nothing.
func (p Private) WithRights(now *ironic.Rights) Private {
	if now == nil {
		return p
	}
	var before ironic.Rights
	if json.Unmarshal(p.values()[rightsKey], &before) == nil && now.Covers(before) {
		return p
	}
	return p.edit(func(values map[string][]byte) {
		values[rightsKey], _ = json.Marshal(now) // strings can always be encoded
	})
}

// RefuseHidden adds an error if Ironic answers that an object does not exist, but the user may only lack the rights to see it: the rights with
// which the object was seen last were others. ask returns the error of a read of the object. It reports whether it has added the error; the
// resource must then stay in the state.
func (w *WithClient) RefuseHidden(ctx context.Context, private GettablePrivate, object string, ask func(context.Context) error, diags *diag.Diagnostics) bool {
	return refuseHidden(ctx, private, object, ask, w.Client.Rights, diags)
}

func refuseHidden(ctx context.Context, private GettablePrivate, object string, ask func(context.Context) error, rights func() *ironic.Rights, diags *diag.Diagnostics) bool {
	var before ironic.Rights
	recorded, _ := private.GetKey(ctx, rightsKey)
	if json.Unmarshal(recorded, &before) != nil {
		return false
	}
	if now := rights(); now != nil && now.Covers(before) || !ironic.IsNotFound(ask(ctx)) {
		return false
	}
	now := rights() // before the first request, they were not known
	if now == nil || now.Covers(before) {
		return false
	}
	diags.AddError("Not visible to this user: "+object, fmt.Sprintf("Ironic answers that there is no %s. It answers the same if the user may not see the object. The object was last seen with %s; this user has %s. "+
		"So it stays in the state, and nothing was changed.\n\nUse the former project and roles. If the object was deleted, remove it from the state: terraform state rm <its address>.", object, rightsText(before), rightsText(*now)))
	return true
}

func rightsText(r ironic.Rights) string {
	scope := "project " + r.Project
	if r.Project == "" {
		scope = "the scope of all projects"
	}
	return fmt.Sprintf("%s and the roles %s", scope, strings.Join(r.Roles, ", "))
}

// AskNode returns a read of a node for RefuseHidden.
func (w *WithClient) AskNode(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := w.Client.Node(ctx, id)
		return err
	}
}
