package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// What other clients do between the plan and the step keeps each step that would disturb it from the machine.
func TestStep_checksWhatThePlanAssumed(t *testing.T) {
	t.Parallel()
	const at, later = "2026-11-01T10:00:00.000000", "2026-11-01T11:00:00.000000"
	all := []deploy.Kind{
		deploy.DoConnect, deploy.DoName, deploy.DoAsk, deploy.DoDescribe, deploy.DoRestart, deploy.DoPowerOn, deploy.DoPowerOff,
		deploy.DoCheck, deploy.DoProtect, deploy.DoEnterRescue, deploy.DoUnprotect,
	}
	moves := []deploy.Kind{deploy.DoRestart, deploy.DoPowerOn, deploy.DoPowerOff}
	restart := []deploy.Kind{deploy.DoRestart}
	for name, tt := range map[string]struct {
		change  func(*ironic.Node)
		refuses []deploy.Kind
		says    string
	}{
		"nothing": {func(*ironic.Node) {}, nil, ""},
		"rescued": {func(n *ironic.Node) {
			n.ProvisionState = "rescue"
		}, append(moves, deploy.DoCheck), `it is in state "rescue"`},
		"serviced": {func(n *ironic.Node) {
			n.ProvisionState = "servicing"
		}, append(moves, deploy.DoCheck), `in state "servicing"`},
		"undeployed and kept": {func(n *ironic.Node) {
			n.ProvisionState = "available"
		}, append(moves, deploy.DoCheck), `in state "available"`},
		"undeployed":          {func(n *ironic.Node) { n.ProvisionState, n.InstanceUUID = "available", "" }, all, "reserved"},
		"reserved by another": {func(n *ironic.Node) { n.InstanceUUID = "other" }, all, "other"},
		"in maintenance": {
			func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason = true, "fan" }, moves, "it is in maintenance (fan)",
		},
		"switched off":   {func(n *ironic.Node) { n.PowerState = "power off" }, nil, ""},
		"restarted":      {func(n *ironic.Node) { n.DriverInternalInfo["last_power_state_change"] = later }, restart, "restarted already"},
		"power unknown":  {func(n *ironic.Node) { n.PowerState = "" }, nil, ""},
		"change unknown": {func(n *ironic.Node) { n.DriverInternalInfo = nil }, nil, ""},
	} {
		for _, kind := range all {
			was := machine.Assumed{}
			if slices.Contains(append(moves, deploy.DoCheck), kind) {
				was.State = "active"
			}
			if kind == deploy.DoRestart {
				was.Power, was.Switched = "on", at
			}
			node := &ironic.Node{}
			node.InstanceUUID, node.ProvisionState, node.PowerState, node.Protected = "mine", "active", "power on", true
			node.DriverInternalInfo = map[string]any{"last_power_state_change": at}
			tt.change(node)
			refuses := slices.Contains(tt.refuses, kind)
			switch err := (deploy.Step{Do: kind, Was: was}).CheckAssumed(node, "mine"); {
			case refuses != (err != nil):
				t.Errorf("%s, %s: error = %v", name, kind, err)
			case refuses && !strings.Contains(err.Error(), tt.says):
				t.Errorf("%s, %s: error = %v, want %q", name, kind, err, tt.says)
			}
		}
	}
	node := &ironic.Node{}
	node.InstanceUUID, node.ProvisionState, node.Maintenance = "mine", "rescue", true
	node.PowerState, node.ProvisionState, node.Maintenance = "power on", "active", false
	wasOff := deploy.Step{Do: deploy.DoRestart, Was: machine.Assumed{State: "active", Power: "off"}}
	if err := wasOff.CheckAssumed(node, "mine"); err == nil || !strings.Contains(err.Error(), "it is on, and was off") {
		t.Errorf("switched on since: %v", err)
	}
	node.ProvisionState, node.Maintenance = "rescue", true
	planned := deploy.Step{Do: deploy.DoPowerOff, Was: machine.Assumed{State: "rescue", Maintenance: true}}
	if err := planned.CheckAssumed(node, "mine"); err != nil {
		t.Errorf("as planned: %v", err)
	}
}
