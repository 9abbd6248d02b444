package found

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// KindClaimLost is the kind of an error which says that a discovered machine could not be claimed.
const KindClaimLost failure.Kind = "claim lost"

// Claim names a discovered node and records which discovery it belongs to. If several runs try this, exactly one
// succeeds: it reserves the node by instance_uuid, Ironic's only compare-and-set, for the duration of two requests
// (reference/discovery.md#claiming-a-node). It succeeds if the node already has this record. It returns an error of KindClaimLost if the
// node cannot be claimed.
func Claim(ctx context.Context, site *machine.Site, id string, mark notes.Discovery) error {
	node, err := site.Ironic.Node(ctx, id)
	if api.IsNotFound(err) {
		return errGone()
	}
	if err != nil {
		return err
	}
	if d := notes.DiscoveryOf(node); d != nil && d.Owner == mark.Owner {
		if d.Name != mark.Name {
			return claimLost("another run of " + d.Owner + " has named it " + d.Name)
		}
		return restoreName(ctx, site, node, d)
	}
	claim := newClaim(id)
	taken, err := take(ctx, site, node, claim)
	if err != nil {
		return err
	}
	mark.Claim = claim
	if reason := claimObstacle(taken); reason != "" {
		return errors.Join(claimLost(reason), releaseClaim(ctx, site, id, claim))
	}
	var patch ironic.Patch
	patch.Set("/name", mark.Name)
	patch.Set("/extra/"+notes.KeyDiscovery, mark)
	patch.Remove("/instance_uuid")
	_, err = site.PatchNode(ctx, id, patch)
	if err == nil {
		return nil
	}
	// The answer may be lost although Ironic applied the patch: release only a node without the record.
	if now, look := site.Ironic.Node(context.WithoutCancel(ctx), id); look == nil && now.Name == mark.Name && now.InstanceUUID == "" {
		if d := notes.DiscoveryOf(now); d != nil && *d == mark {
			return nil
		}
	}
	switch {
	case api.IsStatus(err, http.StatusConflict, "already exists"):
		err = claimLost(fmt.Sprintf("the name %s is taken by now", mark.Name))
	case api.IsNotFound(err):
		return errGone()
	}
	return errors.Join(err, releaseClaim(ctx, site, id, claim))
}

func claimLost(reason string) *failure.Error {
	return &failure.Error{Kind: KindClaimLost, Fact: reason}
}

// claimNamespace is the namespace of the UUIDs that claims take their second half from.
const claimNamespace = "0c1a1a5e-6d65-5461-9f3a-636c61696d73"

// newClaim returns the instance UUID of a claim of a node. Its first half is random, and its second half follows from the node, so that the
// reservation of another client is not taken for a claim.
func newClaim(node string) string {
	half := len("00000000-0000-0000-")
	return ironic.NewUUID()[:half] + ironic.UUID5(claimNamespace, node)[half:]
}

// IsClaim reports whether an instance UUID is a claim of a node.
func IsClaim(instance, node string) bool {
	half := len("00000000-0000-0000-")
	return len(instance) > half && strings.EqualFold(instance[half:], ironic.UUID5(claimNamespace, node)[half:])
}

// isAbandoned reports whether a node is held by a claim that a dead run has left behind.
func isAbandoned(site *machine.Site, n *ironic.Node) bool {
	return IsClaim(n.InstanceUUID, n.UUID) && n.Name == "" && ironic.State(n.ProvisionState) == nodes.Enroll &&
		notes.DiscoveryOf(n) == nil &&
		clock.IsOld(n.UpdatedAt, site.Ironic.ServerNow(), abandonedAfter)
}

// isHeldByOwnClaim reports whether the claim by which a discovery has named a node reserves it again: the answer to the request was lost,
// it was sent again, and Ironic has executed the first one after the node was named.
func isHeldByOwnClaim(n *ironic.Node) bool {
	d := notes.DiscoveryOf(n)
	return d != nil && d.Claim != "" && n.InstanceUUID == d.Claim
}

// ReleaseLate releases a node that is held by its own claim.
func ReleaseLate(ctx context.Context, site *machine.Site, id string) error {
	node, err := site.Ironic.Node(ctx, id)
	if api.IsNotFound(err) {
		return nil
	}
	if err != nil || !isHeldByOwnClaim(node) {
		return err
	}
	return releaseClaim(ctx, site, id, node.InstanceUUID)
}

func errGone() error { return claimLost("the node does not exist any more") }

func restoreName(ctx context.Context, site *machine.Site, node *ironic.Node, d *notes.Discovery) error {
	var patch ironic.Patch
	if node.Name == "" {
		patch.Set("/name", d.Name)
	}
	if isHeldByOwnClaim(node) {
		patch.Remove("/instance_uuid")
	}
	if len(patch) == 0 {
		return nil
	}
	_, err := site.PatchNode(ctx, node.UUID, patch)
	return err
}

// writeMark restores the discovery record of a node that another client has removed. It keeps a record that the node has.
func writeMark(ctx context.Context, site *machine.Site, id string, mark notes.Discovery) error {
	node, err := site.Ironic.Node(ctx, id)
	if err != nil || notes.DiscoveryOf(node) != nil {
		return err
	}
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyDiscovery, mark)
	_, err = site.PatchNode(ctx, id, patch)
	return err
}

// RestoreMark restores the discovery record of a node that may have gone. It warns if that is impossible.
func RestoreMark(ctx context.Context, site *machine.Site, id string, mark notes.Discovery) []decide.Notice {
	err := writeMark(ctx, site, id, mark)
	if err == nil || api.IsNotFound(err) {
		return nil
	}
	return []decide.Notice{decide.Warn(nil, "Discovery mark could not be restored",
		fmt.Sprintf("Another client of Ironic has removed the discovery mark from the node of %s, and the provider could not write it "+
			"again: %v. The next apply tries again.", mark.Name, err))}
}

// take reserves a node for the claim and returns the node as read under the reservation. On failure it leaves no reservation.
func take(ctx context.Context, site *machine.Site, node *ironic.Node, claim string) (*ironic.Node, error) {
	if isAbandoned(site, node) {
		if err := freeAbandoned(ctx, site, node); err != nil {
			return nil, err
		}
	} else if node.InstanceUUID != "" {
		return nil, errClaimed()
	}
	var patch ironic.Patch
	patch.Set("/instance_uuid", claim)
	_, err := site.PatchNode(ctx, node.UUID, patch)
	var now *ironic.Node
	if err == nil || api.IsStatus(err, http.StatusConflict, "associated") {
		now, err = site.Ironic.Node(ctx, node.UUID)
	}
	switch {
	case api.IsNotFound(err):
		return nil, errGone()
	case err != nil: // Ironic may have applied the claim
		return nil, errors.Join(err, releaseClaim(ctx, site, node.UUID, claim))
	case now.InstanceUUID != claim:
		return nil, errClaimed()
	}
	return now, nil
}

func errClaimed() error { return claimLost("another run is claiming it") }

// freeAbandoned removes the claim of a run that died. Only one run at a time does that, so that a slow run cannot remove the next run's
// claim.
func freeAbandoned(ctx context.Context, site *machine.Site, node *ironic.Node) error {
	lock := throttle.Lock{
		Name: "claim:" + node.UUID, Description: "terraform-provider-metal: a run removes the claim of a run that died, " +
			"which takes seconds",
		For: "claim node " + node.UUID, Wait: notes.TakeOverWait,
	}
	err := site.Locks().With(ctx, lock, func(ctx context.Context) error { return releaseClaim(ctx, site, node.UUID, node.InstanceUUID) })
	if fault.Is(err, throttle.KindLocked) {
		return errClaimed()
	}
	return err
}

// claimObstacle returns why a reserved node must not be named; "" if it may be named.
func claimObstacle(n *ironic.Node) string {
	switch d := notes.DiscoveryOf(n); {
	case d != nil:
		return "it belongs to " + d.Owner
	case n.Name != "":
		return "another client has named it " + n.Name
	case ironic.State(n.ProvisionState) != nodes.Enroll:
		return "it is in state " + n.ProvisionState
	}
	return ""
}

// releaseClaim removes a claim if it is still there, also after an interruption, because a claim that stays delays all other runs.
func releaseClaim(ctx context.Context, site *machine.Site, id, claim string) error {
	ctx = context.WithoutCancel(ctx)
	node, err := site.Ironic.Node(ctx, id)
	if api.IsNotFound(err) {
		return nil
	}
	if err != nil || node.InstanceUUID != claim {
		return err
	}
	var patch ironic.Patch
	patch.Remove("/instance_uuid")
	_, err = site.PatchNode(ctx, id, patch)
	return err
}

// abandonedAfter is the age after which a claim counts as left behind by a run that died.
const abandonedAfter = 10 * time.Minute
