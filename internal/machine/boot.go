package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// BootSettings are settings of a machine's firmware that Ironic changes without cleaning.
type BootSettings struct {
	Mode   ironic.BootMode // empty: stays as it is
	Secure *bool           // secure boot; nil: stays as it is
}

// hasBoot reports whether a node has the settings, as far as Ironic knows.
func hasBoot(n *ironic.Node, want BootSettings) bool {
	return (want.Mode == "" || n.BootMode == string(want.Mode)) && (want.Secure == nil || n.SecureBoot != nil &&
		*n.SecureBoot == *want.Secure)
}

// SetBoot changes boot mode and secure boot as wanted, and waits until they have changed. It sends nothing for a setting that the
// node has already. Ironic restarts the machine if its BMC applies them only at a restart
// (reference/ironic.md#boot-mode-and-secure-boot), so each change waits for a slot.
func (m *Machine) SetBoot(ctx context.Context, want BootSettings, timeout time.Duration) error {
	mode, secure := BootSettings{Mode: want.Mode}, BootSettings{Secure: want.Secure}
	changes := []BootSettings{mode, secure}
	if want.Secure != nil && !*want.Secure { // only UEFI has secure boot, so it ends before UEFI does
		changes = []BootSettings{secure, mode}
	}
	was := m.footing()
	for _, change := range changes {
		if hasBoot(m.node, change) {
			continue
		}
		if err := m.changeBoot(ctx, was, change, timeout); err != nil {
			return err
		}
	}
	return nil
}

// changeBoot changes one setting of a machine that still is as it was.
func (m *Machine) changeBoot(ctx context.Context, was footing, change BootSettings, timeout time.Duration) error {
	needed := func() bool { return !hasBoot(m.node, change) }
	_, err := m.order(ctx, powerChange{was: was, to: nodes.Rebooting, want: powerOn}, callOfBoot(change), timeout, needed,
		func(ctx context.Context) error {
			if change.Secure != nil {
				return m.site.Ironic.ChangeSecureBoot(ctx, m.node.UUID, *change.Secure)
			}
			return m.site.Ironic.ChangeBootMode(ctx, m.node.UUID, change.Mode)
		})
	if err != nil {
		return err
	}
	defer m.site.limiter.Started(m.node.UUID)
	deadline := time.Now().Add(timeout)
	err = m.poll(ctx, deadline)
	if err == nil {
		err = m.AwaitUnlocked(ctx, deadline)
	}
	if errors.Is(err, api.ErrNoPoll) {
		return fmt.Errorf("node %s: the change of %s has not ended after %s. Check the machine's BMC and console, then apply again",
			ironic.NodeLabel(m.node), change.name(), timeout)
	}
	if err == nil {
		err = m.Refresh(ctx) // polls have neither setting
	}
	if err == nil && !hasBoot(m.node, change) && m.node.LastError != "" {
		return &failure.Error{
			Node: m.node, Words: api.FirstLine(m.node.LastError),
			Fact: fmt.Sprintf("%s of node %s was not changed. Its driver, %s, or its BMC may not support the change: then remove %s",
				change.name(), ironic.NodeLabel(m.node), m.node.Driver, change.name()),
		}
	}
	return err
}

// callOfBoot returns the request for settings of the firmware. A node that does not have them does not show whether Ironic has tried: to
// set them again does no harm.
func callOfBoot(change BootSettings) Call {
	return Call{doing: "change " + change.name() + " of the machine", trace: func(_, now *ironic.Node, _ time.Time) trace {
		if hasBoot(now, change) {
			return traceFound
		}
		return traceNone
	}}
}

// name names the attribute of a change of one setting.
func (b BootSettings) name() string {
	if b.Secure != nil {
		return "secure_boot"
	}
	return "boot_mode"
}

// KindMedia is the kind of an error which says that Ironic could not attach virtual media, which only the node's last_error shows.
const KindMedia failure.Kind = "virtual media"

// What Ironic does to boot another ISO, in messages.
const (
	WhatDetach     = "detach virtual media"
	WhatAttach     = "attach virtual media"
	WhatBootDevice = "set the boot device"
)

// KeyBootISO is the key of instance_info with the URL of a live ISO.
const KeyBootISO = "boot_iso"

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
		return &failure.Error{Kind: KindMedia, Node: m.node, Fact: fmt.Sprintf("node %s: Ironic could not %s", ironic.NodeLabel(m.node),
			what), Words: api.FirstLine(m.node.LastError)}
	}
	return nil
}

// SetConsole enables or disables the console of the machine, and waits until that has ended. It sends nothing if the console is as wanted.
// Ironic connects to the BMC for it, and touches nothing on the machine, so it needs no slot (reference/ironic.md#consoles).
func (m *Machine) SetConsole(ctx context.Context, enabled bool, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	if states.IsLocked(m.node) { // an interrupted run may have begun to change it
		if err := m.AwaitUnlocked(ctx, deadline); err != nil {
			return err
		}
		if err := m.Refresh(ctx); err != nil { // polls do not have it
			return err
		}
	}
	if m.node.ConsoleEnabled == enabled {
		return nil
	}
	err := m.Unlocked(ctx, func() error { return m.site.Ironic.SetConsole(ctx, m.node.UUID, enabled) })
	if err != nil {
		return m.consoleError(enabled, err)
	}
	if err := m.Refresh(ctx); err != nil {
		return m.unwatched(ctx, err)
	}
	if states.IsLocked(m.node) {
		if err := m.AwaitUnlocked(ctx, deadline); err != nil {
			return err
		}
		if err := m.Refresh(ctx); err != nil {
			return m.unwatched(ctx, err)
		}
	}
	if m.node.ConsoleEnabled != enabled {
		return m.consoleError(enabled, nil)
	}
	return nil
}

// consoleError says that the console was not changed. err is Ironic's refusal; nil: it has accepted the request, and then failed.
func (m *Machine) consoleError(enabled bool, err error) error {
	verb := "disabled"
	if enabled {
		verb = "enabled"
	}
	failed := &failure.Error{
		Node: m.node, Err: err, Fact: fmt.Sprintf("the console of node %s was not %s. Its console interface is %s",
			ironic.NodeLabel(m.node), verb, cmp.Or(m.node.ConsoleInterface, "not known")),
		Advice: "Check the BMC, and what the console interface needs in driver_info, such as ipmi_terminal_port. Then try again.",
	}
	if err == nil {
		failed.Words = api.FirstLine(m.node.LastError)
	}
	return failed
}
