package deploy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Rescue is what a node is with regard to rescue mode.
type Rescue int

// The relations of a node to rescue mode.
const (
	NotRescued   Rescue = iota // it runs what is deployed, or nothing is deployed
	Rescued                    // the rescue system runs
	RescueChange               // it enters or leaves rescue mode
	RescueFailed               // it could not enter or leave rescue mode
)

// RescueOf returns the relation of a node in a state to rescue mode.
func RescueOf(state ironic.State) Rescue {
	switch {
	case !states.Has(state, states.Rescue):
		return NotRescued
	case states.Has(state, states.Busy):
		return RescueChange
	case states.Has(state, states.Failure):
		return RescueFailed
	}
	return Rescued
}

// noRescue is the rescue interface of a node without rescue mode.
const noRescue = "no-rescue"

// CanRescue reports whether a node's rescue interface has a rescue mode.
func CanRescue(n *ironic.Node) bool { return n.RescueInterface != noRescue }

// StateRescued is the provision state of a node whose rescue system runs; StateActive that of a node that runs what is deployed.
const (
	StateRescued = string(nodes.Rescue)
	StateActive  = string(nodes.Active)
)

// EnterRescue boots the rescue system of a deployed machine, with a password for its user rescue, and waits until it runs. If one runs
// already, it is booted again, because it may have another password.
func EnterRescue(ctx context.Context, m *machine.Machine, instance, password string, timeout time.Duration) error {
	if strings.TrimSpace(password) == "" {
		return errors.New("the password of the rescue system is empty")
	}
	return m.Walk(ctx, states.GoalRescued, instance, ironic.Order{Password: password}, timeout)
}

// LeaveRescue starts what is deployed on a machine in rescue mode, and waits until it is active.
func LeaveRescue(ctx context.Context, m *machine.Machine, instance string, timeout time.Duration) error {
	return m.Walk(ctx, states.GoalUnrescued, instance, ironic.Order{}, timeout)
}
