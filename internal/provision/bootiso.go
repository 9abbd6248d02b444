package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// BootISO boots the machine with a live ISO. On a machine that runs nothing it works like Deploy. With RebuildOther it also
// replaces the ISO of a running machine, in the way that interrupts the machine least among those that the server and the driver
// support: a rebuild; attaching virtual media and restarting; or undeploying without cleaning and deploying again. If one of the
// first two fails, it falls back to the third. It does nothing if the machine already runs the deployment or is being deployed
// with it. As for Deploy, the caller must have just read the node.
func (m *Machine) BootISO(ctx context.Context, d Deployment, o DeployOptions) (attempts int, err error) {
	if err := m.AwaitRest(ctx, o.Timeout); err != nil {
		return 0, err
	}
	if err := m.CheckDeploy(ctx); err != nil {
		return 0, err
	}
	if o.Other != RebuildOther || m.state() != nodes.Active || d.DeployedWith(m.node) {
		return m.deployNow(ctx, d, o)
	}
	if err := m.bootable(d, o); err != nil {
		return 0, err
	}
	version, err := m.site.Highest(ctx)
	if err != nil {
		return 0, err
	}
	runs := BootRecord(m.node)
	switch {
	case version <= ironic.LastISORebuild:
		attempts, err = m.deployNow(ctx, d, o)
	case m.attaches(ctx) && d.isOtherISO(m.node):
		if err := m.Connect(ctx, o.Connections); err != nil {
			return 0, err
		}
		err = m.attachISO(ctx, d, o.Timeout)
		attempts = 1
	default:
		return m.redeploy(ctx, runs, d, o)
	}
	var status *ironic.StatusError
	var queue *throttle.QueueError
	declined := Is(err, KindInvalid) || (errors.As(err, &status) && !ironic.IsTransient(err) && !IsAccess(err) && !errors.As(err, &queue))
	if As(err, kindMedia, kindPower) != nil || declined {
		m.site.Logger().WarnContext(ctx, "booting a live ISO: one way failed, undeploying and deploying instead", append(nodeAttributes(m.node), "error", err)...)
		refused := err
		if err = m.Refresh(ctx); err == nil && barred(m.node) != "" {
			return attempts, refused
		}
		if err == nil && m.state() == nodes.Active {
			return m.redeploy(ctx, runs, d, o)
		}
	}
	return attempts, err
}

// AwaitRest waits until no conductor works on a deployed machine, at most for the time-out. An operation can still be in progress
// if an earlier run was killed. It sends no request if the node is not locked.
func (m *Machine) AwaitRest(ctx context.Context, timeout time.Duration) error {
	if m.state() != nodes.Active || !isLocked(m.node) {
		return nil
	}
	if err := m.awaitUnlocked(ctx, time.Now().Add(timeout)); err != nil {
		return err
	}
	return m.Refresh(ctx)
}

// bootable returns the error that prevents booting a running machine with another ISO; nil if there is none.
func (m *Machine) bootable(d Deployment, o DeployOptions) error {
	if err := CheckReservation(m.node, o.Instance); err != nil {
		return err
	}
	if d.ConfigDrive != nil && !CarriesConfigDrive(m.node) {
		return NoConfigDrive(m.node)
	}
	if last := BootRecord(m.node); last != nil && last.Exhausted(*d.LiveISO, time.Now()) {
		return BootLoop(ironic.NodeLabel(m.node), *last)
	}
	if reason := barred(m.node); reason != "" {
		return RefusedFor(m.node, reason+", so it is not restarted. End that first")
	}
	return nil
}

// redeploy undeploys the machine without cleaning it and deploys it again for the same instance. Afterwards automated_clean has
// its previous value. Everything that this needs, including what the node runs, is recorded on the node first, so that Deploy and
// Undeploy can finish it if this run is killed.
func (m *Machine) redeploy(ctx context.Context, runs *bootiso.Record, d Deployment, o DeployOptions) (attempts int, err error) {
	node, allocation := m.node, m.node.AllocationUUID
	note := bootNoteOf(node)
	if note == nil {
		fresh := bootNoteFor(node, *d.LiveISO)
		note = &fresh
	}
	if note.Before = runs; runs != nil {
		note.Record = *runs // the last boot that succeeded, not the failed attempt
	}
	mark := markerOf(node)
	mark.Digest = ""
	var patch ironic.Patch
	patch.Set("/instance_info/"+keyMarker, mark)
	if note.Again == nil || note.Again.Dirty {
		note.Again = &again{Instance: o.Instance}
		switch {
		case node.AutomatedClean == nil:
			note.Again.Clean = cleanUnset
		case *node.AutomatedClean:
			note.Again.Clean = cleanTrue
		}
	}
	if note.Lost, err = m.toLose(ctx, o.Instance); err != nil {
		return 0, err
	}
	patch.Set("/automated_clean", false) // another client may have set it to true since an earlier attempt
	patch.Set("/extra/"+keyBoot, note)
	if err := m.Patch(ctx, patch); err != nil {
		return 0, err
	}
	registerOf(m.site).noteLost(m.node.UUID, note.Lost)
	lost, err := m.undeploy(ctx, o.Instance, allocation, o.Timeout)
	if err != nil {
		return 0, err
	}
	if lost != "" {
		return 0, fmt.Errorf("allocation %s could not be made again: %s", allocation, lost)
	}
	if err := m.Refresh(ctx); err != nil {
		return 0, err
	}
	return m.deployNow(ctx, d, o)
}

// attaches reports whether the API can attach virtual media to the running machine, and the user sees how that ends.
func (m *Machine) attaches(ctx context.Context) bool {
	version, err := m.site.Microversion(ctx)
	seen := !m.node.Hidden.Reservation && !m.node.Hidden.LastError
	return err == nil && version >= ironic.VersionVirtualMedia && CarriesConfigDrive(m.node) && seen
}

// isOtherISO reports whether a deployment differs from the node's current one only in the live ISO.
func (d Deployment) isOtherISO(n *ironic.Node) bool {
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
		if key != keyBootISO && !ironic.SameJSON(n.InstanceInfo[key], value) {
			return false
		}
	}
	return true
}

// kindMedia is the kind of an error which says that Ironic could not attach virtual media, which only the node's last_error shows.
const kindMedia Kind = "virtual media"

// What Ironic does to boot another ISO, in messages.
const (
	whatDetach     = "detach virtual media"
	whatAttach     = "attach virtual media"
	whatBootDevice = "set the boot device"
)

// manageMedia sends a request about virtual media and waits for its end.
func (m *Machine) manageMedia(ctx context.Context, what string, deadline time.Time, send func(context.Context) error) error {
	if err := m.insist(ctx, callWithoutTrace(what), time.Until(deadline), send); err != nil {
		return err
	}
	if err := m.Refresh(ctx); err != nil {
		return m.unwatched(ctx, err)
	}
	if err := m.awaitUnlocked(ctx, deadline); err != nil {
		return err
	}
	if m.node.LastError != "" { // Ironic clears last_error when an operation starts
		return &Error{Kind: kindMedia, Node: m.node, Fact: fmt.Sprintf("node %s: Ironic could not %s", ironic.NodeLabel(m.node), what), Words: ironic.FirstLine(m.node.LastError)}
	}
	return nil
}

// attachISO attaches another ISO as virtual media to a running machine and restarts it once. It records the new ISO on the node
// only after the ISO is attached. The marker keeps the time of the node's last power change, which shows whether the restart has
// happened. It sets the boot device first, too: fewer users may do that than may change the media, and a machine keeps its ISO if it is refused.
func (m *Machine) attachISO(ctx context.Context, d Deployment, timeout time.Duration) error {
	deadline, id := time.Now().Add(timeout), m.node.UUID
	bootFromISO := func(ctx context.Context) error { return m.site.SetBootDevice(ctx, id, ironic.DeviceCDROM) }
	if err := m.insist(ctx, callWithoutTrace(whatBootDevice), timeout, bootFromISO); err != nil {
		return err
	}
	for _, call := range []struct {
		what string
		send func(context.Context) error
	}{
		{whatDetach, func(ctx context.Context) error { return m.site.DetachMedia(ctx, id, ironic.DeviceCDROM) }},
		{whatAttach, func(ctx context.Context) error { return m.site.AttachMedia(ctx, id, ironic.DeviceCDROM, d.LiveISO.URL) }},
		{whatBootDevice, bootFromISO},
	} {
		if err := m.manageMedia(ctx, call.what, deadline, call.send); err != nil {
			return err
		}
	}
	if err := m.Refresh(ctx); err != nil { // polls do not contain the time of the last power change
		return err
	}
	mark := markerOf(m.node)
	mark.Digest, mark.State, mark.Since, mark.Power = d.Digest(), m.state(), since(m.node), lastPowerChange(m.node)
	var patch ironic.Patch
	patch.Set("/extra/"+keyBoot, bootNoteFor(m.node, *d.LiveISO))
	patch.Set("/instance_info/"+keyBootISO, d.LiveISO.URL)
	patch.Set("/instance_info/"+keyMarker, mark)
	if err := m.Patch(ctx, patch); err != nil {
		return err
	}
	if err := m.Reboot(ctx, time.Until(deadline)); err != nil {
		return err
	}
	return m.Refresh(ctx) // driver_internal_info shows whether the machine was restarted
}
