package ironic

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// ReserveNode claims a node for an instance, which is Ironic's only atomic claim: a node that is reserved by anybody
// else is a ReservedError. A node that is reserved by this very instance is fine.
func (c *Client) ReserveNode(ctx context.Context, id, instance string) (*Node, error) {
	node, err := c.getNode(ctx, id)
	if err != nil {
		return nil, err
	}
	if node.InstanceUUID == instance {
		return node, nil
	}
	if err := Deployable(node, ""); err != nil {
		return node, err
	}
	var patch Patch
	patch.Set("/instance_uuid", instance)
	reserved, err := c.PatchNode(ctx, node.UUID, patch)
	taken := isStatus(err, http.StatusConflict, "associated with") || isStatus(err, http.StatusConflict, "is already associated")
	if taken || isTransient(err) || (err != nil && ctx.Err() != nil) {
		answered, stop := outlast(ctx)
		defer stop()
		if now, nerr := c.getNode(answered, id); nerr == nil && (taken || now.InstanceUUID == instance) {
			return now, CheckReservation(now, instance) // ours, if an answer was lost
		}
	}
	return reserved, err
}

// Deployable says what keeps a node from being deployed anew by who has the reservation ("": none yet): a ReservedError or a
// RefusedError; nil if nothing does.
func Deployable(node *Node, instance string) error {
	if err := CheckReservation(node, instance); err != nil {
		return err
	}
	if State(node.ProvisionState) != nodes.Available {
		return refusal(node)
	}
	if node.Maintenance {
		return &RefusedError{Node: node, Goal: GoalDeployed, Reason: "it is in maintenance" + inBrackets(node.MaintenanceReason) + ". Take it out of maintenance first"}
	}
	return nil
}

// inBrackets is " (text)"; "" if there is no text.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// refusal is why a node that is not available cannot be deployed.
func refusal(node *Node) error {
	m := nextMove(GoalDeployed, State(node.ProvisionState), false)
	if m.kind == wait {
		m.reason = reasonBusy
	}
	if m.reason == "" {
		m.reason = reasonDeployed
	}
	return &RefusedError{Node: node, Goal: GoalDeployed, Reason: m.reason}
}

// CheckReservation returns a ReservedError unless the node is reserved by the instance or allocation.
func CheckReservation(node *Node, instance string) error {
	if node.InstanceUUID != instance {
		return &ReservedError{Node: node, Ours: instance}
	}
	return nil
}

// Other says what Deploy does with a node that runs something else than the deployment.
type Other int

// What Deploy may do with a node that runs something else.
const (
	RefuseOther  Other = iota // leave it alone: a RefusedError
	KeepOther                 // leave it alone: it is what shall run, for all that is known
	RebuildOther              // rebuild it, which wipes its root disk
)

// DeployOptions say how to deploy.
type DeployOptions struct {
	Instance string        // the reservation that must hold: an allocation's UUID, or that of ReserveNode
	Other    Other         // what to do with a node that runs something else
	Attempts int           // how often to try; at least once
	Limit    time.Duration // of each attempt, without the time in the queue

	// Known is the Mark of the node when what is known to run there was deployed; empty if nobody knows. With RebuildOther, a node with
	// the deployment's own Mark is kept if that is another one: a run that was killed has deployed it.
	Known string

	// Admit is asked, with the node as it is, before anything is written or sent; an error ends it. It may be nil.
	Admit func(context.Context, *Node) error
}

// admit asks Admit.
func (o DeployOptions) admit(ctx context.Context, node *Node) error {
	if o.Admit == nil {
		return nil
	}
	return o.Admit(ctx, node)
}

// Deploy brings a node that we have reserved to run a deployment, and returns how often it was tried. A deployment of an
// earlier run that is under way is waited for, one that has ended is kept. On error it returns the node as last seen.
func (c *Client) Deploy(ctx context.Context, id string, d Deployment, o DeployOptions) (*Node, int, error) {
	node, attempts, err := c.deploy(ctx, id, d, o)
	if err != nil {
		return node, attempts, err
	}
	done, err := c.cleanAgain(ctx, node) // that it was dirty is of the past
	if err != nil {
		c.cfg.Logger.WarnContext(ctx, "a note about cleaning stays on a deployed node, and is ignored", "node", id, "error", err)
		return node, attempts, nil
	}
	return done, attempts, nil
}

// deploy is Deploy, but for what the note of a redeployment says.
func (c *Client) deploy(ctx context.Context, id string, d Deployment, o DeployOptions) (node *Node, attempts int, err error) {
	if node, err = c.getNode(ctx, id); err != nil {
		return nil, 0, err
	}
	if err := o.admit(ctx, node); err != nil {
		return node, 0, err
	}
	if node, err = c.endUndeploy(ctx, node, o); err != nil {
		return node, 0, err
	}
	if unfinished(node) { // an earlier run was killed while it undeployed the node
		return node, 0, refusal(node)
	}
	if err := CheckReservation(node, o.Instance); err != nil {
		return node, 0, err
	}
	if node, err = c.cleanAgain(ctx, node); err != nil {
		return node, 0, err
	}
	if inTransit := nextMove(GoalDeployed, State(node.ProvisionState), false); inTransit.kind == wait {
		if !occupied(State(node.ProvisionState)) {
			return node, 0, refusal(node) // it is being cleaned, say: walking on from there would deploy it without an image
		}
		node, err = c.walk(ctx, node.UUID, GoalDeployed, o.Instance, c.orderOf(d), o.Limit)
		attempts++
		var failed *FailedError
		if err != nil && (!errors.As(err, &failed) || attempts >= o.Attempts) {
			return node, attempts, err
		}
	}
	goal := GoalDeployed
	if State(node.ProvisionState) == nodes.Active {
		news := o.Known != "" && o.Known != Mark(node) // the image's URL need not be the one we gave: Ironic follows redirections
		mayRun := attempts > 0 || o.Other != RebuildOther || d.Image == nil || d.Image.URL == ImageSource(node) || news
		if d.DeployedWith(node) && mayRun {
			return node, max(attempts, 1), nil
		}
		switch o.Other {
		case KeepOther:
			return node, attempts, nil
		case RefuseOther:
			return node, attempts, &RefusedError{Node: node, Goal: GoalDeployed, Reason: "it runs something that this resource did not deploy. " +
				"Import it (terraform import <address of the metal_deployment> " + node.UUID + "), or undeploy it first"}
		case RebuildOther:
			goal = GoalRebuilt
		}
	}
	if nextMove(goal, State(node.ProvisionState), false).kind == refuse {
		return node, attempts, refusal(node) // before anything is written on it
	}
	if node, err = c.prepare(ctx, node, d); err != nil {
		return node, attempts, err
	}
	for {
		attempts++
		node, err = c.walk(ctx, id, goal, o.Instance, c.orderOf(d), o.Limit)
		var failed *FailedError
		if !errors.As(err, &failed) || attempts >= o.Attempts || State(node.ProvisionState) != nodes.DeployFail {
			return node, attempts, err
		}
	}
}

// endUndeploy brings the undeploying of a node that is to be deployed again for the same instance to its end, if an
// earlier run was interrupted at that, and sees to its reservation.
func (c *Client) endUndeploy(ctx context.Context, node *Node, o DeployOptions) (*Node, error) {
	spec := SuspendedAllocation(node)
	suspended := spec != nil && spec.UUID == o.Instance
	if !leaving(node) || (!suspended && !deployedAgain(node, o.Instance)) {
		return node, nil
	}
	allocation := ""
	if suspended {
		allocation = o.Instance
	}
	if _, err := c.undeploy(ctx, node, o.Instance, allocation, o.Limit); err != nil {
		return node, err
	}
	if suspended {
		return c.getNode(ctx, node.UUID)
	}
	return c.ReserveNode(ctx, node.UUID, o.Instance)
}

func (c *Client) orderOf(d Deployment) order {
	with := order{DeploySteps: d.DeploySteps}
	if d.ConfigDrive != nil {
		with.ConfigDrive = d.ConfigDrive
	}
	return with
}

// prepare writes instance_info, with the marker, and lets Ironic validate it before anything is started.
func (c *Client) prepare(ctx context.Context, node *Node, d Deployment) (*Node, error) {
	want := d.instanceInfo()
	before := markerOf(node)
	if _, given := want[keyTraits]; !given && slices.Contains(before.Keys, keyTraits) && node.AllocationUUID != "" {
		a, err := c.getAllocation(ctx, node.AllocationUUID)
		if err != nil {
			return node, err
		}
		want[keyTraits] = a.Traits // as when it was reserved
	}
	stale := append([]string{"root_device", "capabilities"}, imageKeys...)
	if d.ConfigDrive == nil {
		stale = append(stale, keyConfigDrive)
	}
	stale = append(stale, before.Keys...)
	want[keyMarker] = marker{Digest: d.Digest(), State: State(node.ProvisionState), Since: since(node), Keys: slices.Sorted(maps.Keys(want))}
	var patch Patch
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !SameJSON(node.InstanceInfo[key], want[key]) {
			patch.Set("/instance_info/"+key, want[key])
		}
	}
	slices.Sort(stale)
	for _, key := range slices.Compact(stale) {
		if _, wanted := want[key]; !wanted {
			if _, exists := node.InstanceInfo[key]; exists {
				patch.Remove("/instance_info/" + key)
			}
		}
	}
	if d.LiveISO != nil {
		if d.ConfigDrive != nil && !CarriesConfigDrive(node) {
			return node, &NoConfigDriveError{Node: node}
		}
		patch.Set("/extra/"+keyBoot, bootNoteFor(node, *d.LiveISO))
	}
	if _, err := c.PatchNode(ctx, node.UUID, patch); err != nil {
		return node, err
	}
	// Not the answer to the patch: its times have no fractions, and would not be those of the marker.
	patched, err := c.getNode(ctx, node.UUID)
	if err != nil {
		return node, err
	}
	return patched, c.validate(ctx, patched)
}

// validate asks Ironic whether it could deploy the node. A part that the driver does not have has no result.
func (c *Client) validate(ctx context.Context, node *Node) error {
	type verdict struct {
		Result *bool  `json:"result"`
		Reason string `json:"reason"`
	}
	var report struct {
		Boot   verdict `json:"boot"`
		Deploy verdict `json:"deploy"`
	}
	if err := c.do(ctx, http.MethodGet, "nodes/"+node.UUID+"/validate", nil, &report); err != nil {
		return err
	}
	var reasons []string
	for _, v := range []verdict{report.Boot, report.Deploy} {
		if v.Result != nil && !*v.Result {
			reasons = append(reasons, firstLine(c.secrets.redact(v.Reason)))
		}
	}
	if reasons = slices.Compact(reasons); len(reasons) > 0 {
		return &InvalidNodeError{Node: node, Reasons: reasons}
	}
	return nil
}
