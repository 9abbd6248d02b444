package framework

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// WithRights returns the private state of a resource that was just seen by a user with the given rights; nil: unknown. Rights that cover
// the recorded ones change nothing.
func (p Private) WithRights(now *api.Rights) Private {
	if now == nil || p.notes().Missing {
		return p
	}
	if before := p.notes().Rights; before != nil && now.Covers(*before) {
		return p
	}
	return p.edit(func(s *serverNotes) { s.Rights = now })
}

// RefuseHidden adds an error if Ironic answers that an object does not exist, but the user may only lack the rights to see it: the rights
// with which the object was seen last were others. ask returns the error of a read of the object. It reports whether it has added the
// error; the resource must then stay in the state.
func (w *WithClient) RefuseHidden(ctx context.Context, private GettablePrivate, object string, ask func(context.Context) error,
	diags *diag.Diagnostics,
) bool {
	return refuseHidden(ctx, private, object, ask, w.Site.Ironic.Rights, diags)
}

func refuseHidden(ctx context.Context, private GettablePrivate, object string, ask func(context.Context) error, rights func() *api.Rights,
	diags *diag.Diagnostics,
) bool {
	noted := load[serverNotes](ctx, private, serverKey)
	if noted.Rights == nil {
		return false
	}
	before := *noted.Rights
	if now := rights(); now != nil && now.Covers(before) || !api.IsNotFound(ask(ctx)) {
		return false
	}
	now := rights() // before the first request, they were not known
	if now == nil || now.Covers(before) {
		return false
	}
	diags.AddError("Not visible to this user: "+object,
		fmt.Sprintf("Ironic answers that there is no %s. It answers the same if the user may not see the object. The object was last "+
			"seen with %s; this user has %s. So it stays in the state, and nothing was changed.\n\nUse the former project and roles. If "+
			"the object was deleted, remove it from the state: terraform state rm <its address>.", object, before, now))
	return true
}

// AskNode returns a read of a node for RefuseHidden.
func (w *WithClient) AskNode(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := w.Site.Ironic.Node(ctx, id)
		return err
	}
}

// AskAllocation returns a read of an allocation for RefuseHidden.
func (w *WithClient) AskAllocation(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := w.Site.Ironic.Allocation(ctx, id)
		return err
	}
}

// Right is a right that the apply of a plan needs: a rule of Ironic's policy.
type Right struct {
	At   *path.Path // the attribute that needs it; nil: the resource
	Rule string

	// OnlyWarns is set where an error would prevent what the user may do: before a destruction, Terraform plans the creation of what is
	// missing.
	OnlyWarns bool
}

// RightAt is the right that an attribute needs.
func RightAt(attribute, rule string) Right {
	at := path.Root(attribute)
	return Right{At: &at, Rule: rule}
}

// ForeseeRefusals warns of what Ironic will refuse to the user, or refuses the plan if that is certain. find reads the node; nil: the plan
// does not know it yet, or needs none. It says nothing during an apply, which says itself what Ironic refuses.
func (w *WithClient) ForeseeRefusals(ctx context.Context, diags *diag.Diagnostics, find expect.FindNode, needs ...Right) {
	if !w.Known() || w.Site.Ironic.HasWritten() {
		return
	}
	told := map[string]bool{}
	for _, need := range needs {
		if told[need.Rule] {
			continue
		}
		told[need.Rule] = true
		doubt := expect.ForeseeRefusal(ctx, w.Site, need.Rule, find)
		if doubt == nil {
			continue
		}
		said := diag.Diagnostic(diag.NewWarningDiagnostic(doubt.Summary, doubt.Detail))
		if doubt.Fatal && !need.OnlyWarns {
			said = diag.NewErrorDiagnostic(doubt.Summary, doubt.Detail)
		}
		if need.At != nil {
			said = diag.WithPath(*need.At, said)
		}
		if diags.Append(said); doubt.Fatal {
			return // the others would be refused, too
		}
	}
}

// ForeseeChange is ForeseeRefusals for the creation, change or deletion of an object that is no part of a node. kind begins the names of
// its rules.
func (w *WithClient) ForeseeChange(ctx context.Context, diags *diag.Diagnostics, kind string, req resource.ModifyPlanRequest) {
	does := ":update"
	switch {
	case req.Plan.Raw.Equal(req.State.Raw):
		return
	case req.State.Raw.IsNull():
		does = ":create"
	case req.Plan.Raw.IsNull():
		does = ":delete"
	}
	w.ForeseeRefusals(ctx, diags, nil, Right{Rule: kind + does})
}

// FindNode returns a read of a node that plans share.
func (w *WithClient) FindNode(id string) expect.FindNode {
	return func(ctx context.Context) (*ironic.Node, error) { return w.Site.Ironic.NodeForRefresh(ctx, id) }
}
