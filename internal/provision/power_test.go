package provision_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

func TestPower_managedWithBMC(t *testing.T) {
	t.Parallel()
	if !provision.PowerManaged(&ironic.Node{Driver: "fake-hardware"}) || !provision.PowerManaged(&ironic.Node{Driver: "redfish", DriverInfo: map[string]any{"redfish_address": "https://b"}}) {
		t.Error("a known BMC is not managed")
	}
	if provision.PowerManaged(&ironic.Node{Driver: "ipmi", DriverInfo: map[string]any{"ipmi_username": "root"}}) {
		t.Error("a host without a BMC address is managed")
	}
}

// An earlier run that was killed, or another client, has begun to switch the machine: Ironic locks it until that has ended.
func TestPower_waitsForChangeInProgress(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]int{"power on": 0, "power off": 1} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := fleet(1)
				fake.StepTime = 5 * time.Minute
				client, id := newClient(fake), fake.Nodes()[0].UUID
				fake.Set(id, "power_state", map[string]string{"power on": "power off", "power off": "power on"}[target])
				asOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": target})
				machine, err := client.Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				fake.ResetRequests()
				if err := machine.SetPower(t.Context(), true, time.Hour); err != nil {
					t.Error(err)
				}
				if sent := count(fake, http.MethodPut, "/v1/nodes/"+id+"/states/power"); sent != want || nodeOf(t, fake, id).PowerState != "power on" {
					t.Errorf("%d power changes were requested, want %d; the machine is %s", sent, want, nodeOf(t, fake, id).PowerState)
				}
			})
		})
	}
}

// A run that was killed while a machine was started or restarted leaves the change in progress. The next run restarts it after that.
func TestPower_restartWaitsForChangeInProgress(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"power on", "power off", "rebooting"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := fleet(1)
				fake.StepTime = 5 * time.Minute
				client, id := newClient(fake), fake.Nodes()[0].UUID
				fake.Set(id, "power_state", map[string]string{"power on": "power off", "power off": "power on", "rebooting": "power on"}[target])
				asOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": target})
				machine, err := client.Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				fake.ResetRequests()
				if err := machine.Reboot(t.Context(), time.Hour); err != nil {
					t.Error(err)
				}
				if sent := count(fake, http.MethodPut, "/v1/nodes/"+id+"/states/power"); sent != 1 || nodeOf(t, fake, id).PowerState != "power on" {
					t.Errorf("%d power changes were requested, want 1; the machine is %s", sent, nodeOf(t, fake, id).PowerState)
				}
			})
		})
	}
}

// The same holds for an edit of the node.
func TestPower_editWaitsForChangeInProgress(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.StepTime = 5 * time.Minute
		client, id := newClient(fake), fake.Nodes()[0].UUID
		machine, err := client.Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		asOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "power on"})
		if err := machine.Patch(t.Context(), setting("/description", "new")); err != nil || machine.Node().Description != "new" {
			t.Errorf("the description is %q: %v", machine.Node().Description, err)
		}
	})
}
