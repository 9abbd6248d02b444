package ironic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
)

// lastISORebuild is the API of Ironic 26.0. Newer ones, up to 39 and the present, answer a rebuild without image_source with
// 500 (reference discovery-boot-limit.md 3.3).
const lastISORebuild Microversion = 91

// BootISO boots a node with a live ISO: for the first time, like Deploy, or, with RebuildOther, instead of the one it runs. In the
// latter case it takes the way that costs the machine least of those that the server and the driver know: a rebuild, attaching virtual
// media and a reboot, or undeploying without cleaning and deploying. One that fails is followed by the last. Nothing is
// done if the node already runs, or is being given, the deployment. On error it returns the node as last seen.
func (c *Client) BootISO(ctx context.Context, id string, d Deployment, o DeployOptions) (*Node, int, error) {
	node, err := c.getNode(ctx, id)
	if err == nil && State(node.ProvisionState) == nodes.Active && node.Reservation != "" {
		node, err = c.unlocked(ctx, node.UUID, o.Limit) // an earlier run was killed, and something that it began is still under way
	}
	if err != nil {
		return nil, 0, err
	}
	if err := o.admit(ctx, node); err != nil {
		return node, 0, err
	}
	o.Admit = nil // it has been asked
	if o.Other != RebuildOther || State(node.ProvisionState) != nodes.Active || d.DeployedWith(node) {
		return c.Deploy(ctx, node.UUID, d, o)
	}
	if err := CheckReservation(node, o.Instance); err != nil {
		return node, 0, err
	}
	if d.ConfigDrive != nil && !CarriesConfigDrive(node) {
		return node, 0, &NoConfigDriveError{Node: node}
	}
	if last := BootRecord(node); last != nil && last.Exhausted(*d.LiveISO, time.Now()) {
		return node, 0, &BootLoopError{Node: node, Last: *last}
	}
	version, err := c.highest(ctx)
	if err != nil {
		return node, 0, err
	}
	attempts, runs := 0, BootRecord(node)
	switch {
	case version <= lastISORebuild:
		node, attempts, err = c.Deploy(ctx, node.UUID, d, o)
	case c.attaches(ctx, node) && d.isOtherISO(node):
		node, err = c.attachISO(ctx, node, d, o.Limit)
		attempts = 1
	default:
		return c.redeploy(ctx, node, runs, d, o)
	}
	var status *StatusError
	var media *mediaError
	var queue *QueueError
	if errors.As(err, &media) || (errors.As(err, &status) && !isTransient(err) && !errors.As(err, &queue)) {
		c.cfg.Logger.WarnContext(ctx, "booting a live ISO: one way failed, undeploying and deploying instead", "node", id, "error", err)
		if node, err = c.getNode(ctx, id); err == nil && State(node.ProvisionState) == nodes.Active {
			return c.redeploy(ctx, node, runs, d, o)
		}
	}
	return node, attempts, err
}

// redeploy undeploys a node without cleaning it and deploys it for the same instance. automated_clean is what it was
// after that. What it needs for that is on the node, with what the node runs: Deploy and Undeploy finish it if this run is
// killed in between.
func (c *Client) redeploy(ctx context.Context, node *Node, runs *bootiso.Record, d Deployment, o DeployOptions) (*Node, int, error) {
	allocation := node.AllocationUUID
	note := bootNoteOf(node)
	if note == nil {
		fresh := bootNoteFor(node, *d.LiveISO)
		note = &fresh
	}
	if note.Before = runs; runs != nil {
		note.Record = *runs // not what was tried in vain
	}
	m := markerOf(node)
	m.Digest = ""
	var patch Patch
	patch.Set("/instance_info/"+keyMarker, m)
	if note.Again == nil || note.Again.Dirty {
		note.Again = &again{Instance: o.Instance}
		switch {
		case node.AutomatedClean == nil:
			note.Again.Clean = cleanUnset
		case *node.AutomatedClean:
			note.Again.Clean = cleanTrue
		}
	}
	patch.Set("/automated_clean", false) // somebody may have switched it on again since an earlier try
	patch.Set("/extra/"+keyBoot, note)
	if _, err := c.PatchNode(ctx, node.UUID, patch); err != nil {
		return node, 0, err
	}
	done, err := c.undeploy(ctx, node, o.Instance, allocation, o.Limit)
	if err != nil {
		if done != nil && done.Node != nil {
			node = done.Node
		}
		return node, 0, err
	}
	if done.Lost != "" {
		return done.Node, 0, fmt.Errorf("allocation %s could not be made again: %s", allocation, done.Lost)
	}
	return c.Deploy(ctx, node.UUID, d, o)
}

// attaches reports whether virtual media can be attached to a running node over the API.
func (c *Client) attaches(ctx context.Context, node *Node) bool {
	version, err := c.Microversion(ctx)
	return err == nil && version >= versionVirtualMedia && CarriesConfigDrive(node)
}

// isOtherISO reports whether a deployment differs in nothing but the live ISO from what a node was deployed with.
func (d Deployment) isOtherISO(n *Node) bool {
	if d.ConfigDrive != nil || n.InstanceInfo[keyConfigDrive] != nil || len(d.DeploySteps) > 0 {
		return false
	}
	want := d.instanceInfo()
	for _, key := range markerOf(n).Keys {
		if _, wanted := want[key]; !wanted {
			return false
		}
	}
	for key, value := range want {
		if key != keyBootISO && !SameJSON(n.InstanceInfo[key], value) {
			return false
		}
	}
	return true
}

// mediaError says that virtual media could not be attached: Ironic tells only by the node's last_error.
type mediaError struct {
	node *Node
	what string
}

func (e *mediaError) Error() string {
	return fmt.Sprintf("node %s: %s: %s", NodeLabel(e.node), e.what, firstLine(e.node.LastError))
}

// attachISO gives a running node another ISO as virtual media and reboots it once. That it is about to is noted only when
// the machine would boot the ISO; the marker tells by the time of the node's last change of power whether it has.
func (c *Client) attachISO(ctx context.Context, node *Node, d Deployment, limit time.Duration) (*Node, error) {
	deadline := time.Now().Add(limit)
	now, path := node, "nodes/"+node.UUID
	for _, call := range []struct {
		what, method, path string
		body               any
	}{
		{"detach virtual media", http.MethodDelete, path + "/vmedia?device_types=cdrom", nil},
		{"attach virtual media", http.MethodPost, path + "/vmedia", map[string]any{"device_type": "cdrom", "image_url": d.LiveISO.URL}},
		{"set the boot device", http.MethodPut, path + "/management/boot_device", map[string]any{"boot_device": "cdrom", "persistent": true}},
	} {
		if err := c.do(ctx, call.method, call.path, call.body, nil); err != nil {
			return now, err
		}
		var err error
		if now, err = c.unlocked(ctx, node.UUID, time.Until(deadline)); err != nil {
			return node, err
		}
		if now.LastError != "" { // which Ironic clears when it begins
			return now, &mediaError{node: now, what: call.what}
		}
	}
	m := markerOf(now)
	m.Digest, m.State, m.Since, m.Power = d.Digest(), State(now.ProvisionState), since(now), lastPowerChange(now)
	var patch Patch
	patch.Set("/extra/"+keyBoot, bootNoteFor(now, *d.LiveISO))
	patch.Set("/instance_info/"+keyBootISO, d.LiveISO.URL)
	patch.Set("/instance_info/"+keyMarker, m)
	if _, err := c.PatchNode(ctx, node.UUID, patch); err != nil {
		return now, err
	}
	now, err := c.Reboot(ctx, node.UUID, time.Until(deadline))
	if err == nil && now.LastError != "" { // it is on, as it was before
		return now, &mediaError{node: now, what: "reboot"}
	}
	return now, err
}

// unlocked waits until Ironic does nothing with a node.
func (c *Client) unlocked(ctx context.Context, id string, limit time.Duration) (*Node, error) {
	deadline := time.Now().Add(limit)
	node, err := c.getNode(ctx, id)
	for err == nil && node.Reservation != "" {
		last := node
		if node, err = c.fleet.next(ctx, id, time.Until(deadline)); errors.Is(err, errLimit) {
			return last, fmt.Errorf("node %s is still reserved by conductor %s after %s", NodeLabel(last), last.Reservation, limit)
		}
		if err == nil && node.Reservation == "" { // what was seen came from a short list
			return c.getNode(ctx, id)
		}
	}
	return node, err
}
