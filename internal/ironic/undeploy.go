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

// OwnExtraKey reports whether a key of extra is this provider's own bookkeeping.
func OwnExtraKey(key string) bool { return key == keyAllocation || key == "terraform_metal_probe" }

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
	if err != nil {
		return nil, err
	}
	suspended := SuspendedAllocation(node)
	ours := node.InstanceUUID == instance || node.InstanceUUID == "" && suspended != nil && suspended.UUID == allocation
	if !ours && !unfinished(node) {
		return &Undeployed{Node: node}, nil
	}
	if State(node.ProvisionState) == nodes.Available {
		return c.release(ctx, node, instance, allocation, limit)
	}
	if allocation != "" && node.InstanceUUID == allocation {
		if node, err = c.suspend(ctx, node, allocation); err != nil {
			return nil, err
		}
	}
	goal := GoalUndeployed
	if State(node.ProvisionState) == nodes.CleanFail {
		goal = GoalAvailable // the instance is gone, its data perhaps not: clean again
	}
	if node, err = c.walk(ctx, node.UUID, goal, order{}, limit); err != nil {
		return &Undeployed{Node: node}, err
	}
	return c.release(ctx, node, instance, allocation, limit)
}

// unfinished reports whether a node without a reservation is still on its way out of an instance.
func unfinished(node *Node) bool {
	if node.InstanceUUID != "" {
		return false
	}
	m := nextMove(GoalUndeployed, State(node.ProvisionState), true)
	return m.kind == wait || m.kind == repair
}

// suspend writes an allocation down on its node, so that it can be created again even if this run is killed.
func (c *Client) suspend(ctx context.Context, node *Node, allocation string) (*Node, error) {
	a, err := c.getAllocation(ctx, allocation)
	if IsNotFound(err) {
		return node, nil
	}
	if err != nil {
		return node, err
	}
	var patch Patch
	patch.Set("/extra/"+keyAllocation, AllocationSpec{
		UUID: a.UUID, Name: a.Name, ResourceClass: a.ResourceClass, Traits: a.Traits, Owner: a.Owner, Extra: a.Extra,
		CandidateNodes: []string{node.UUID},
	})
	return c.PatchNode(ctx, node.UUID, patch)
}

// release gives up what we hold of a node that runs nothing: our reservation or, after undeploying, creates the
// suspended allocation again.
func (c *Client) release(ctx context.Context, node *Node, instance, allocation string, limit time.Duration) (*Undeployed, error) {
	out := &Undeployed{Node: node}
	var patch Patch
	if allocation == "" && node.InstanceUUID == instance && instance != "" {
		patch.Remove("/instance_uuid")
	}
	if _, exists := node.InstanceInfo[keyMarker]; exists {
		patch.Remove("/instance_info/" + keyMarker)
	}
	if spec := SuspendedAllocation(node); spec != nil && spec.UUID == allocation {
		if spec.ResourceClass == "" {
			spec.ResourceClass = node.ResourceClass // a backfill may have none
		}
		err := c.restore(ctx, *spec, limit)
		var none *NoMatchError
		if err != nil && !errors.As(err, &none) {
			return out, fmt.Errorf("create allocation %s again: %w", spec.UUID, err)
		}
		if none != nil {
			out.Lost = none.Error()
		}
		patch.Remove("/extra/" + keyAllocation)
	}
	if len(patch) == 0 {
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
