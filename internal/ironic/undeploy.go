package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// keyAllocation is where extra of a node remembers the allocation that Ironic deletes with the instance, from before the
// node is undeployed until the allocation is there again (reference ironic-facts.md 5.4).
const keyAllocation = "terraform_metal_allocation"

// OwnKey reports whether a key of extra or instance_info is this provider's own bookkeeping.
func OwnKey(key string) bool {
	return key == keyAllocation || key == keyMarker || key == keyFailures || key == keyProbe || key == keyDiscovery || key == keyEnrolled ||
		key == keyBoot
}

// SuspendedAllocation returns the allocation that waits for a node to be undeployed, to be created again then; nil if
// there is none.
func SuspendedAllocation(n *Node) *AllocationSpec {
	text, err := json.Marshal(n.Extra[keyAllocation])
	if err != nil {
		return nil
	}
	var spec AllocationSpec
	if json.Unmarshal(text, &spec) != nil || spec.UUID == "" {
		return nil
	}
	return &spec
}

// Undeployed tells what became of a node that was undeployed.
type Undeployed struct {
	Node *Node
	// Lost says why the allocation could not be kept; empty if it was, or there was none.
	Lost string
}

// Undeploy ends the instance on a node and waits until the node is clean again. The allocation, if one is named, is
// created again as soon as the node is free: same UUID, name, class and traits, this node as its only candidate. A
// node that has been reserved by somebody else meanwhile, or is gone, is left alone: nothing of ours is on it.
func (c *Client) Undeploy(ctx context.Context, id, instance, allocation string, limit time.Duration) (*Undeployed, error) {
	node, err := c.getNode(ctx, id)
	if IsNotFound(err) {
		return &Undeployed{}, nil
	}
	if err == nil && (!deployedAgain(node, instance) || !leaving(node)) {
		node, err = c.cleanAgain(ctx, node)
	}
	if err == nil && Dirty(node, instance) && node.InstanceUUID == instance {
		node, err = c.giveUp(ctx, node, allocation)
	}
	if err == nil && deployedAgain(node, instance) && leaving(node) {
		node, err = c.cleanAfterAll(ctx, node, instance, limit)
	}
	if err != nil {
		return nil, err
	}
	done, err := c.undeploy(ctx, node, instance, allocation, limit)
	if err == nil {
		err = c.forgetBoot(ctx, done.Node, allocation)
	}
	return done, err
}

// giveUp gives up our reservation of a node that nothing is deployed on, so that it can be cleaned. An allocation is noted, to be created
// again.
func (c *Client) giveUp(ctx context.Context, node *Node, allocation string) (*Node, error) {
	patch := unprepare(node)
	if node.AllocationUUID == "" {
		patch.Remove("/instance_uuid")
	} else if _, err := c.suspend(ctx, node, allocation); err != nil {
		return node, err
	}
	_, err := c.PatchNode(ctx, node.UUID, patch)
	if err == nil && node.AllocationUUID != "" {
		err = c.DeleteAllocation(ctx, node.AllocationUUID)
	}
	if err != nil {
		return node, err
	}
	return c.getNode(ctx, node.UUID)
}

// unprepare removes from a node what it was prepared with to be deployed.
func unprepare(node *Node) (patch Patch) {
	if _, exists := node.InstanceInfo[keyMarker]; !exists {
		return nil
	}
	for _, key := range append(markerOf(node).Keys, keyMarker) {
		if _, exists := node.InstanceInfo[key]; exists && key != keyTraits { // those may be the allocation's
			patch.Remove("/instance_info/" + key)
		}
	}
	return patch
}

// cleanAfterAll cleans a node that an interrupted run has undeployed without cleaning it, to deploy it again, and has not reserved.
func (c *Client) cleanAfterAll(ctx context.Context, node *Node, instance string, limit time.Duration) (*Node, error) {
	node, err := c.walk(ctx, node.UUID, GoalUndeployed, instance, order{}, limit)
	if err == nil {
		node, err = c.cleanAgain(ctx, node)
	}
	for _, goal := range []Goal{GoalManageable, GoalAvailable} {
		if err == nil && node.InstanceUUID == "" && !node.Retired {
			node, err = c.Reach(ctx, node.UUID, goal, limit)
		}
	}
	return node, err
}

// leaving reports whether a node has lost its reservation, or is about to: Ironic removes it half way through an undeploying.
func leaving(node *Node) bool {
	return node.InstanceUUID == "" || State(node.ProvisionState) == nodes.Deleting
}

// undeploy is Undeploy for a node that may be deployed again at once.
func (c *Client) undeploy(ctx context.Context, node *Node, instance, allocation string, limit time.Duration) (*Undeployed, error) {
	suspended := SuspendedAllocation(node)
	if suspended != nil && suspended.UUID != allocation {
		suspended = nil
	}
	ours := node.InstanceUUID == instance && instance != "" || node.InstanceUUID == "" && suspended != nil
	if !ours && !unfinished(node) {
		return &Undeployed{Node: node}, nil
	}
	if State(node.ProvisionState) == nodes.Available {
		return c.release(ctx, node, instance, suspended, limit)
	}
	var err error
	if allocation != "" && node.InstanceUUID == allocation {
		if suspended, err = c.suspend(ctx, node, allocation); err != nil {
			return nil, err
		}
	}
	goal := GoalUndeployed
	if cleans(node) && !node.Retired {
		goal = GoalAvailable // the instance is gone, its data perhaps not: if cleaning fails or has failed, clean again
	}
	if node, err = c.walk(ctx, node.UUID, goal, instance, order{}, limit); err != nil {
		return &Undeployed{Node: node}, err
	}
	return c.release(ctx, node, instance, suspended, limit)
}

// unfinished reports whether a node without a reservation is still on its way out of an instance.
func unfinished(node *Node) bool {
	if node.InstanceUUID != "" {
		return false
	}
	state := State(node.ProvisionState)
	return state == nodes.Deleting || state == nodes.Error || (cleans(node) && node.TargetProvisionState == string(nodes.Available))
}

// cleans reports whether a node is being cleaned, or that has failed.
func cleans(node *Node) bool {
	state := State(node.ProvisionState)
	return state == nodes.Cleaning || state == nodes.CleanWait || state == nodes.CleanFail
}

// suspend notes what allocation a node has, to be created again, and writes that down on the node, so that it can be done
// even if this run is killed. Nothing can be written while Ironic deploys the node; then the note is all there is.
func (c *Client) suspend(ctx context.Context, node *Node, allocation string) (*AllocationSpec, error) {
	a, err := c.getAllocation(ctx, allocation)
	if IsNotFound(err) {
		return nil, nil //nolint:nilnil // a reservation that is no allocation
	}
	if err != nil {
		return nil, err
	}
	spec := &AllocationSpec{
		UUID: a.UUID, Name: a.Name, ResourceClass: a.ResourceClass, Traits: a.Traits, Owner: a.Owner, Extra: a.Extra,
		CandidateNodes: []string{node.UUID},
	}
	if nextMove(GoalDeployed, State(node.ProvisionState), false).kind == wait {
		return spec, nil
	}
	var patch Patch
	patch.Set("/extra/"+keyAllocation, spec)
	_, err = c.PatchNode(ctx, node.UUID, patch)
	return spec, err
}

// release gives up what we hold of a node that runs nothing: our own reservation or, after undeploying, creates the
// suspended allocation again.
func (c *Client) release(ctx context.Context, node *Node, instance string, suspended *AllocationSpec, limit time.Duration) (*Undeployed, error) {
	out := &Undeployed{Node: node}
	// Else it is somebody else's by now, what is written on it too.
	free := node.InstanceUUID == instance || (node.InstanceUUID == "" && !Occupied(node))
	patch := unprepare(node) // there is something if it was prepared and never deployed
	if node.AllocationUUID == "" && node.InstanceUUID == instance && instance != "" {
		patch.Remove("/instance_uuid")
	}
	if suspended != nil {
		if suspended.ResourceClass == "" {
			suspended.ResourceClass = node.ResourceClass // a backfill may have none
		}
		err := c.restore(ctx, *suspended, limit)
		var none *NoMatchError
		if err != nil && !errors.As(err, &none) {
			return out, fmt.Errorf("create allocation %s again: %w", suspended.UUID, err)
		}
		if none != nil {
			out.Lost = none.Error()
		}
	}
	if _, exists := node.Extra[keyAllocation]; exists && suspended != nil {
		patch.Remove("/extra/" + keyAllocation)
	}
	if len(patch) == 0 || !free {
		return out, nil
	}
	patched, err := c.PatchNode(ctx, node.UUID, patch)
	if err == nil {
		out.Node = patched
	}
	return out, err
}

// restore creates an allocation again, unless it is there.
func (c *Client) restore(ctx context.Context, spec AllocationSpec, limit time.Duration) error {
	_, err := c.getAllocation(ctx, spec.UUID)
	if IsNotFound(err) {
		_, err = c.CreateAllocation(ctx, spec)
	}
	if err != nil {
		return err
	}
	_, err = c.AwaitAllocation(ctx, spec, limit)
	return err
}
