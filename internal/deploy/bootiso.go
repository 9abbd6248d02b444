package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// BootISO boots the machine with a live ISO. On a machine that runs nothing it works like Deploy. With RebuildOther it also
// replaces the ISO of a running machine, in the way that interrupts the machine least among those that the server and the driver
// support: a rebuild; attaching virtual media and restarting; or undeploying without cleaning and deploying again. If one of the
// first two fails, it falls back to the third. It does nothing if the machine already runs the deployment or is being deployed
// with it. As for Deploy, the caller must have just read the node.
func BootISO(ctx context.Context, m *machine.Machine, d Deployment, o DeployOptions) (attempts int, err error) {
	if err := AwaitRest(ctx, m, o.Timeout); err != nil {
		return 0, err
	}
	if err := m.CheckDeploy(ctx); err != nil {
		return 0, err
	}
	if o.Other != RebuildOther || m.State() != nodes.Active || d.DeployedWith(m.Node()) {
		return deployNow(ctx, m, d, o)
	}
	if err := bootable(m, d, o); err != nil {
		return 0, err
	}
	version, err := m.Site().Ironic.Highest(ctx)
	if err != nil {
		return 0, err
	}
	runs := BootRecord(m.Node())
	switch {
	case version <= api.LastISORebuild:
		attempts, err = deployNow(ctx, m, d, o)
	case attaches(ctx, m) && isOtherISO(d, m.Node()):
		if err := ConnectVIFs(ctx, m, o.Connections); err != nil {
			return 0, err
		}
		err = attachISO(ctx, m, d, o.Timeout)
		attempts = 1
	default:
		return redeploy(ctx, m, runs, d, o)
	}
	var status *api.StatusError
	declined := failure.Is(err, failure.KindInvalid) || (errors.As(err, &status) && !api.IsTransient(err) && !failure.IsAccess(err) &&
		!fault.Is(err, throttle.KindQueue))
	if failure.As(err, machine.KindMedia, machine.KindPower) != nil || declined {
		m.Site().Ironic.Logger().WarnContext(ctx, "booting a live ISO: one way failed, undeploying and deploying instead",
			append(machine.NodeAttributes(m.Node()), "error", err)...)
		refused := err
		if err = m.Refresh(ctx); err == nil && bootBarred(m.Node()) != "" {
			return attempts, refused
		}
		if err == nil && m.State() == nodes.Active {
			return redeploy(ctx, m, runs, d, o)
		}
	}
	return attempts, err
}

// AwaitRest waits until no conductor works on a deployed machine, at most for the time-out. An operation can still be in progress
// if an earlier run was killed. It sends no request if the node is not locked.
func AwaitRest(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
	if m.State() != nodes.Active || !states.IsLocked(m.Node()) {
		return nil
	}
	if err := m.AwaitUnlocked(ctx, time.Now().Add(timeout)); err != nil {
		return err
	}
	return m.Refresh(ctx)
}

// bootable returns the error that prevents booting a running machine with another ISO; nil if there is none.
func bootable(m *machine.Machine, d Deployment, o DeployOptions) error {
	if err := machine.CheckReservation(m.Node(), o.Instance); err != nil {
		return err
	}
	if d.ConfigDrive != nil && !carriesConfigDrive(m.Node()) {
		return NoConfigDrive(m.Node())
	}
	if last := BootRecord(m.Node()); last != nil && last.Exhausted(d.LiveISO.Artifacts, time.Now()) {
		return BootLoop(ironic.NodeLabel(m.Node()), *last)
	}
	if reason := bootBarred(m.Node()); reason != "" {
		return machine.RefusedFor(m.Node(), reason+", so it is not restarted. End that first")
	}
	return nil
}

// redeploy undeploys the machine without cleaning it and deploys it again for the same instance. Afterwards automated_clean has
// its previous value. Everything that this needs, including what the node runs, is recorded on the node first, so that Deploy and
// Undeploy can finish it if this run is killed.
func redeploy(ctx context.Context, m *machine.Machine, runs *bootiso.Record, d Deployment, o DeployOptions) (attempts int, err error) {
	node, allocation := m.Node(), m.Node().AllocationUUID
	note := BootNoteOf(node)
	if note == nil {
		fresh := bootNoteFor(node, d.LiveISO.Artifacts)
		note = &fresh
	}
	if note.Before = runs; runs != nil {
		note.Record = *runs // the last boot that succeeded, not the failed attempt
	}
	mark := InstanceMarkerOf(node)
	mark.Digest = ""
	var patch ironic.Patch
	patch.Set("/instance_info/"+notes.KeyMarker, mark)
	if note.Again == nil || note.Again.Dirty {
		note.Again = &Again{Instance: o.Instance}
		switch {
		case node.AutomatedClean == nil:
			note.Again.Clean = CleanUnset
		case *node.AutomatedClean:
			note.Again.Clean = CleanTrue
		}
	}
	if note.Lost, err = ToLose(ctx, m, o.Instance); err != nil {
		return 0, err
	}
	patch.Set("/automated_clean", false) // another client may have set it to true since an earlier attempt
	patch.Set("/extra/"+notes.KeyBoot, note)
	if err := m.Patch(ctx, patch); err != nil {
		return 0, err
	}
	registerOf(m.Site()).NoteLost(m.Node().UUID, note.Lost)
	lost, err := undeploy(ctx, m, o.Instance, allocation, o.Timeout)
	if err != nil {
		return 0, err
	}
	if lost != "" {
		return 0, fmt.Errorf("allocation %s could not be made again: %s", allocation, lost)
	}
	if err := m.Refresh(ctx); err != nil {
		return 0, err
	}
	return deployNow(ctx, m, d, o)
}

// attaches reports whether the API can attach virtual media to the running machine, and the user sees how that ends.
func attaches(ctx context.Context, m *machine.Machine) bool {
	version, err := m.Site().Ironic.Microversion(ctx)
	seen := !m.Node().Hidden.Reservation && !m.Node().Hidden.LastError
	return err == nil && version >= api.VersionVirtualMedia && carriesConfigDrive(m.Node()) && seen
}

// isOtherISO reports whether a deployment differs from the node's current one only in the live ISO.
func isOtherISO(d Deployment, n *ironic.Node) bool {
	if d.ConfigDrive != nil || n.InstanceInfo[KeyConfigDrive] != nil || len(d.DeploySteps) > 0 {
		return false
	}
	want := d.AsInstanceInfo()
	for _, key := range InstanceMarkerOf(n).Keys {
		if _, wanted := want[key]; !wanted {
			return false
		}
	}
	for key, value := range want {
		if key != machine.KeyBootISO && !ironic.SameJSON(n.InstanceInfo[key], value) {
			return false
		}
	}
	return true
}

// attachISO attaches another ISO as virtual media to a running machine and restarts it once. It records the new ISO on the node only after
// the ISO is attached. The marker keeps the time of the node's last power change, which shows whether the restart has happened. It sets the
// boot device first, too: fewer users may do that than may change the media, and a machine keeps its ISO if it is refused.
func attachISO(ctx context.Context, m *machine.Machine, d Deployment, timeout time.Duration) error {
	deadline, id := time.Now().Add(timeout), m.Node().UUID
	runs, state := m.Node().InstanceUUID, m.State()
	moved := func() bool { return m.Node().InstanceUUID != runs || m.State() != state }
	bootFromISO := func(ctx context.Context) error {
		return m.Site().Ironic.SetBootDevice(ctx, id, ironic.DeviceCDROM, true)
	}
	if err := m.Insist(ctx, machine.CallWithoutTrace(machine.WhatBootDevice), timeout, bootFromISO); err != nil {
		return err
	}
	for _, call := range []struct {
		what string
		send func(context.Context) error
	}{
		{machine.WhatDetach, func(ctx context.Context) error { return m.Site().Ironic.DetachMedia(ctx, id, ironic.DeviceCDROM) }},
		{machine.WhatAttach, func(ctx context.Context) error {
			return m.Site().Ironic.AttachMedia(ctx, id, ironic.DeviceCDROM, d.LiveISO.URL)
		}},
		{machine.WhatBootDevice, bootFromISO},
	} {
		if moved() {
			return m.AsItIs()
		}
		if err := m.ManageMedia(ctx, call.what, deadline, call.send); err != nil {
			return err
		}
	}
	if err := m.Refresh(ctx); err != nil { // polls do not contain the time of the last power change
		return err
	}
	if moved() {
		return m.AsItIs()
	}
	mark := InstanceMarkerOf(m.Node())
	mark.Digest, mark.State, mark.Since, mark.Power = d.Digest(), m.State(), deployedSince(m.Node()), machine.LastPowerChange(m.Node())
	mark.Restart = startFor(m, d.Restart, "")
	var patch ironic.Patch
	patch.Set("/extra/"+notes.KeyBoot, bootNoteFor(m.Node(), d.LiveISO.Artifacts))
	patch.Set("/instance_info/"+machine.KeyBootISO, d.LiveISO.URL)
	patch.Set("/instance_info/"+notes.KeyMarker, mark)
	if err := m.Patch(ctx, patch); err != nil {
		return err
	}
	if err := m.Reboot(ctx, machine.OffHard, time.Until(deadline)); err != nil {
		return err
	}
	return m.Refresh(ctx) // driver_internal_info shows whether the machine was restarted
}
