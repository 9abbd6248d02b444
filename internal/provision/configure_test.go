package provision_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

var enabled = provision.Hardware{BIOS: map[string]string{"ProcVirtualization": "Enabled"}}

// What a killed run has begun is waited for, and not repeated if the machine has the settings then.
func TestConfigure_waitsForKilledRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.StepTime = time.Hour
		id := nodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "manageable")
		asOther(t, fake, http.MethodPut, strings.TrimPrefix(provisionPath(id), "/v1/"), map[string]any{"target": "clean", "clean_steps": []any{map[string]any{
			"interface": "bios", "step": "apply_configuration", "args": map[string]any{"settings": []any{map[string]any{"name": "ProcVirtualization", "value": "Enabled"}}},
		}}})
		before := len(verbs(t, fake, id))
		machine, err := newClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		open, err := machine.Configure(t.Context(), provision.HardwareChange{Want: enabled}, 2*time.Hour)
		if err != nil || len(open) > 0 {
			t.Errorf("open: %v, %v", open, err)
		}
		if sent := verbs(t, fake, id)[before:]; len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A machine with other users takes a slot of the limit for its service, and stays theirs.
func TestConfigure_serviceNeedsReservation(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		id := nodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "active")
		fake.Set(id, "instance_uuid", "aaaaaaaa-1111-4111-8111-111111111111")
		machine, err := newClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		fake.Set(id, "instance_uuid", "bbbbbbbb-1111-4111-8111-111111111111") // another user gets it meanwhile
		open, err := machine.Configure(t.Context(), provision.HardwareChange{Want: enabled, Live: true}, time.Hour)
		if err == nil || !slices.Equal(open, []provision.Part{provision.PartBIOS}) {
			t.Errorf("open: %v, %v", open, err)
		}
		if sent := verbs(t, fake, id); len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A service found failed, with the fault that Ironic has set, is repeated.
func TestConfigure_repeatsFailedService(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		fake.AddFleet(1, "baremetal")
		id := nodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "service failed")
		fake.Set(id, "maintenance", true)
		fake.Set(id, "fault", "service failure")
		machine, err := newClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		open, err := machine.Configure(t.Context(), provision.HardwareChange{Want: enabled, Live: true}, time.Hour)
		if node := nodeOf(t, fake, "node-000"); err != nil || len(open) > 0 || node.ProvisionState != "active" || node.Maintenance {
			t.Errorf("open: %v, %v; the node is %s, maintenance %t", open, err, node.ProvisionState, node.Maintenance)
		}
	})
}

// Steps run without a ramdisk if asked.
func TestConfigure_withoutRamdisk(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		id := nodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "manageable")
		machine, err := newClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Configure(t.Context(), provision.HardwareChange{Want: enabled, NoRamdisk: true}, time.Hour); err != nil {
			t.Fatal(err)
		}
		requests := fake.Requests()
		if !slices.ContainsFunc(requests, func(r fakeironic.Request) bool { return strings.Contains(r.Body, `"disable_ramdisk":true`) }) {
			t.Error("no request asks for that")
		}
	})
}
