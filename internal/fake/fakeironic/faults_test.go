package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// changes are requests of every kind that move a machine, each with what shows that it took effect. The node is active and on, and its
// BMC speaks Redfish.
var changes = map[string]struct {
	method, path string
	body         any
	took         func(before, now fakeironic.Node) bool
}{
	"restart": {http.MethodPut, "states/power", map[string]any{"target": "rebooting"}, powerChanged},
	"off":     {http.MethodPut, "states/power", map[string]any{"target": "power off"}, powerChanged},
	"verb": {http.MethodPut, "states/provision", map[string]any{"target": "deleted"}, func(before, now fakeironic.Node) bool {
		return before.ProvisionState != now.ProvisionState
	}},
	"boot mode": {http.MethodPut, "states/boot_mode", map[string]any{"target": "bios"}, func(_, now fakeironic.Node) bool {
		return now.Raw["boot_mode"] == "bios"
	}},
	"media": {
		http.MethodPost, "vmedia",
		map[string]any{"device_type": "cdrom", "image_url": "https://images.example.com/a.iso"},
		func(before, now fakeironic.Node) bool { return before.Raw["updated_at"] != now.Raw["updated_at"] },
	},
}

func powerChanged(before, now fakeironic.Node) bool {
	stamp := func(n fakeironic.Node) any {
		info, _ := n.Raw["driver_internal_info"].(map[string]any)
		return info["last_power_state_change"]
	}
	return stamp(before) != stamp(now)
}

func deployedNode(a *api) string {
	uuid := a.node("n1", map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media",
		"driver_info": map[string]any{"redfish_address": "https://192.0.2.1"},
	})
	a.fake.Set(uuid, "provision_state", "active")
	a.fake.Set(uuid, "power_state", "power on")
	return uuid
}

func TestFault_executedLate(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		synctest.Test(t, func(t *testing.T) {
			fake := &fakeironic.Server{StepTime: time.Second}
			a := newAPI(t, fake)
			uuid := deployedNode(a)
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if r.Method == change.method && strings.HasSuffix(r.URL.Path, change.path) {
					return &fakeironic.Rejection{Status: http.StatusGatewayTimeout, Late: 5 * time.Second}
				}
				return nil
			}
			<-time.After(time.Second)
			before, _ := fake.Node(uuid)
			if got := a.do(change.method, "/v1/nodes/"+uuid+"/"+change.path, change.body); got.status != http.StatusGatewayTimeout {
				t.Errorf("%s: %d", name, got.status)
			}
			<-time.After(4 * time.Second)
			if now, _ := fake.Node(uuid); change.took(before, now) || before.Raw["updated_at"] != now.Raw["updated_at"] {
				t.Errorf("%s took effect too early", name)
			}
			<-time.After(3 * time.Second)
			if now, _ := fake.Node(uuid); !change.took(before, now) {
				t.Errorf("%s took no effect", name)
			}
		})
	}
}

func TestFault_acceptedWithNothingButAnError(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		synctest.Test(t, func(t *testing.T) {
			fake := &fakeironic.Server{StepTime: time.Second}
			a := newAPI(t, fake)
			uuid := deployedNode(a)
			fake.Set(uuid, "last_error", "older")
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if r.Method == change.method && strings.HasSuffix(r.URL.Path, change.path) {
					return &fakeironic.Rejection{Fails: "the BMC is silent"}
				}
				return nil
			}
			before, _ := fake.Node(uuid)
			if got := a.do(change.method, "/v1/nodes/"+uuid+"/"+change.path, change.body); got.status != http.StatusAccepted {
				t.Errorf("%s: %d", name, got.status)
			}
			if now, _ := fake.Node(uuid); now.Reservation == "" || now.LastError != "" {
				t.Errorf("%s: locked by %q, last_error %q at once", name, now.Reservation, now.LastError)
			}
			<-time.After(2 * time.Second)
			now, _ := fake.Node(uuid)
			if now.Reservation != "" || now.LastError != "the BMC is silent" || now.ProvisionState != before.ProvisionState ||
				now.PowerState != before.PowerState || powerChanged(before, now) {
				t.Errorf("%s: %+v", name, now)
			}
		})
	}
}
