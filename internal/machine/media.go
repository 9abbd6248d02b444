package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// KindMedia is the kind of an error which says that Ironic could not attach virtual media, which only the node's last_error shows.
const KindMedia failure.Kind = "virtual media"

// What Ironic does to boot another ISO, in messages.
const (
	WhatDetach     = "detach virtual media"
	WhatAttach     = "attach virtual media"
	WhatBootDevice = "set the boot device"
)

// ManageMedia sends a request about virtual media and waits for its end.
func (m *Machine) ManageMedia(ctx context.Context, what string, deadline time.Time, send func(context.Context) error) error {
	if err := m.Insist(ctx, CallWithoutTrace(what), time.Until(deadline), send); err != nil {
		return err
	}
	if err := m.Refresh(ctx); err != nil {
		return m.unwatched(ctx, err)
	}
	if err := m.AwaitUnlocked(ctx, deadline); err != nil {
		return err
	}
	if m.node.LastError != "" { // Ironic clears last_error when an operation starts
		return &failure.Error{Kind: KindMedia, Node: m.node, Fact: fmt.Sprintf("node %s: Ironic could not %s", ironic.NodeLabel(m.node), what), Words: api.FirstLine(m.node.LastError)}
	}
	return nil
}

// KeyBootISO is the key of instance_info with the URL of a live ISO.
const KeyBootISO = "boot_iso"

// ChangeMedia inserts an image into a virtual device of the machine, in place of another, and waits for that. An empty image empties the
// device.
func (m *Machine) ChangeMedia(ctx context.Context, device ironic.Device, image string, timeout time.Duration) error {
	if err := m.refuseBusy(); err != nil {
		return err
	}
	if runs, _ := m.node.InstanceInfo[KeyBootISO].(string); runs != "" && device == ironic.DeviceCDROM && states.Occupied(m.State()) {
		return m.refuse("it runs a live ISO, which may be in its virtual CD drive. Use another device, or change live_iso of its metal_deployment")
	}
	if err := m.permitted(ctx, timeout); err != nil {
		return err
	}
	deadline, id := time.Now().Add(timeout), m.node.UUID
	err := m.ManageMedia(ctx, WhatDetach, deadline, func(ctx context.Context) error { return m.site.Ironic.DetachMedia(ctx, id, device) })
	if err == nil && image != "" {
		err = m.ManageMedia(ctx, WhatAttach, deadline, func(ctx context.Context) error { return m.site.Ironic.AttachMedia(ctx, id, device, image) })
	}
	return err
}
