package host_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

var enabled = host.Hardware{BIOS: map[string]string{"ProcVirtualization": "Enabled"}}

// What a killed run has begun is waited for, and not repeated if the machine has the settings then.
func TestConfigure_waitsForKilledRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = time.Hour
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "manageable")
		ironictest.AsOther(t, fake, http.MethodPut, strings.TrimPrefix(ironictest.ProvisionPath(id), "/v1/"),
			map[string]any{"target": "clean", "clean_steps": []any{map[string]any{
				"interface": "bios", "step": "apply_configuration",
				"args": map[string]any{"settings": []any{map[string]any{"name": "ProcVirtualization", "value": "Enabled"}}},
			}}})
		before := len(ironictest.Verbs(t, fake, id))
		machine, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		open, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled}, 2*time.Hour)
		if err != nil || len(open) > 0 {
			t.Errorf("open: %v, %v", open, err)
		}
		if sent := ironictest.Verbs(t, fake, id)[before:]; len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A service in progress is waited for, too, and not repeated.
func TestConfigure_waitsForServiceInProgress(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = time.Hour
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "active")
		fake.Set(id, "instance_uuid", "aaaaaaaa-1111-4111-8111-111111111111")
		if err := sitetest.NewClient(fake).Ironic.ChangeProvisionState(t.Context(), id,
			ironic.Order{Verb: nodes.TargetService, Steps: enabled.Steps(host.HardwareSeen{})}); err != nil {
			t.Fatal(err)
		}
		before := len(ironictest.Verbs(t, fake, id))
		machine, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		open, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled, Live: true}, 2*time.Hour)
		if sent := ironictest.Verbs(t, fake, id)[before:]; err != nil || len(open) > 0 || len(sent) > 0 {
			t.Errorf("open: %v, %v; sent %v", open, err, sent)
		}
	})
}

// A machine with other users takes a slot of the limit for its service, and stays theirs.
func TestConfigure_serviceNeedsReservation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "active")
		fake.Set(id, "instance_uuid", "aaaaaaaa-1111-4111-8111-111111111111")
		machine, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		fake.Set(id, "instance_uuid", "bbbbbbbb-1111-4111-8111-111111111111") // another user gets it meanwhile
		open, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled, Live: true}, time.Hour)
		if err == nil || !slices.Equal(open, []host.HardwarePart{host.PartBIOS}) {
			t.Errorf("open: %v, %v", open, err)
		}
		if sent := ironictest.Verbs(t, fake, id); len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// A service found failed, with the fault that Ironic has set, is repeated.
func TestConfigure_repeatsFailedService(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		fake.AddFleet(1, "baremetal")
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "service failed")
		fake.Set(id, "maintenance", true)
		fake.Set(id, "fault", "service failure")
		machine, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		open, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled, Live: true}, time.Hour)
		if node := ironictest.NodeOf(t, fake, "node-000"); err != nil || len(open) > 0 || node.ProvisionState != "active" ||
			node.Maintenance {
			t.Errorf("open: %v, %v; the node is %s, maintenance %t", open, err, node.ProvisionState, node.Maintenance)
		}
	})
}

// After a failed service, Ironic keeps the node locked until it has ended the abort. Nothing else is sent before that.
func TestConfigure_failedServiceEndsUnlocked(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Fail = func(_ fakeironic.Node, verb string) string {
			if verb == "service" {
				return "it broke"
			}
			return ""
		}
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "active")
		fake.Set(id, "instance_uuid", "aaaaaaaa-1111-4111-8111-111111111111")
		slowAbort := ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			aborts := false
			if r.Body != nil {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				aborts, r.Body = strings.Contains(string(body), `"abort"`), io.NopCloser(bytes.NewReader(body))
			}
			answer, err := fake.RoundTrip(r)
			if aborts {
				fake.Set(id, "reservation", "conductor")
				time.AfterFunc(time.Minute, func() { fake.Set(id, "reservation", nil) })
			}
			return answer, err
		})
		on, err := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = slowAbort }).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		_, err = host.ConfigureHardware(t.Context(), on, host.HardwareChange{Want: enabled, Live: true}, time.Hour)
		if node := on.Node(); !failure.Is(err, machine.KindService) || node.ProvisionState != "active" || node.Reservation != "" {
			t.Errorf("%v; the node is %s, locked by %q", err, node.ProvisionState, node.Reservation)
		}
	})
}

// Steps run without a ramdisk if asked.
func TestConfigure_withoutRamdisk(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "provision_state", "manageable")
		machine, err := sitetest.NewClient(fake).Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled, NoRamdisk: true},
			time.Hour); err != nil {
			t.Fatal(err)
		}
		requests := fake.Requests()
		if !slices.ContainsFunc(requests, func(r fakeironic.Request) bool { return strings.Contains(r.Body, `"disable_ramdisk":true`) }) {
			t.Error("no request asks for that")
		}
	})
}

// A machine in the pool that has all settings stays there: leaving it would cost a cleaning.
func TestConfigure_leavesThePoolOnlyForWork(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		site := sitetest.NewClient(fake)
		machine, err := site.Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := machine.Reach(t.Context(), states.GoalAvailable, time.Hour); err != nil {
			t.Fatal(err)
		}
		before := len(ironictest.Verbs(t, fake, id))
		open, err := host.ConfigureHardware(t.Context(), machine, host.HardwareChange{Want: enabled}, time.Hour)
		if sent := ironictest.Verbs(t, fake, id)[before:]; err != nil || len(open) > 0 || len(sent) > 0 {
			t.Errorf("open: %v, %v; sent %v", open, err, sent)
		}
	})
}
