package machine_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// operations are those that actions request, each with the state of the machine for it.
var operations = map[string]struct {
	state string
	do    func(t *testing.T, m *machine.Machine) error
}{
	"power": {"active", func(t *testing.T, m *machine.Machine) error {
		return m.ChangePower(t.Context(), machine.ActionReboot, time.Hour)
	}},
	"service": {"active", func(t *testing.T, m *machine.Machine) error { return m.Service(t.Context(), harmless, time.Hour) }},
	"clean": {"manageable", func(t *testing.T, m *machine.Machine) error {
		return m.Clean(t.Context(), harmless, false, time.Hour)
	}},
	"inspect": {"manageable", func(t *testing.T, m *machine.Machine) error { return m.Inspect(t.Context(), false, time.Hour) }},
	"abort":   {"clean wait", func(t *testing.T, m *machine.Machine) error { return m.Abort(t.Context(), time.Hour) }},
	"unhold":  {"clean hold", func(t *testing.T, m *machine.Machine) error { return m.Unhold(t.Context(), time.Hour) }},
	"media": {"active", func(t *testing.T, m *machine.Machine) error {
		return m.ChangeMedia(t.Context(), ironic.DeviceCDROM, "https://images.example.com/a.iso", time.Hour)
	}},
	"boot device": {"active", func(t *testing.T, m *machine.Machine) error {
		return m.BootFrom(t.Context(), ironic.DeviceCDROM, true, time.Hour)
	}},
	"NMI": {"active", func(t *testing.T, m *machine.Machine) error { return m.SendNMI(t.Context(), time.Hour) }},
}

var harmless = ironic.Order{Steps: []ironic.CleanStep{{Interface: "bios", Step: "factory_reset"}}}

// operable returns a fake with one machine in a state, switched on.
func operable(state string) *fakeironic.Server {
	fake := ironictest.Fleet(1)
	fake.StepTime = time.Minute
	for field, value := range map[string]any{"power_state": "power on", "provision_state": state, "target_provision_state": "manageable"} {
		fake.Set("node-000", field, value)
	}
	return fake
}

func TestOperate_asksTheGuard(t *testing.T) {
	t.Parallel()
	for name, op := range operations {
		for _, stage := range []machine.Stage{machine.BeforeQueue, machine.BeforeVerb} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := operable(op.state)
					client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Guard = refuser(stage) })
					m, done, err := client.Operate(t.Context(), "node-000")
					if err != nil {
						t.Fatal(err)
					}
					defer done()
					if err := op.do(t, m); !errors.Is(err, errTaken) {
						t.Errorf("at stage %d: error = %v, want the guard's", stage, err)
					}
					if slices.ContainsFunc(fake.Requests(), func(r fakeironic.Request) bool {
						return r.Method != "GET" && !strings.HasPrefix(r.Path, "/v1/chassis")
					}) {
						t.Errorf("at stage %d: something was sent", stage)
					}
				})
			})
		}
	}
}

func TestOperate_tellsStatesAndQueue(t *testing.T) {
	t.Parallel()
	for name, wants := range map[string][]string{
		"power": {"active, power on, changing to power on"}, "service": {"servicing", "active, power on"},
		"clean": {"cleaning", "manageable, power on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := operable(operations[name].state)
				fake.AddFleet(1, "other")
				other := fake.Nodes()[1].UUID
				fake.Set(other, "provision_state", "deploying")
				client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = throttle.Limit{Max: 1} })
				m, done, err := client.Operate(t.Context(), "node-000")
				if err != nil {
					t.Fatal(err)
				}
				defer done()
				var mu sync.Mutex
				var told []string
				m.Tell(func(text string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, text)
				})
				time.AfterFunc(10*time.Minute, func() { fake.Set(other, "provision_state", "active") })
				if err := operations[name].do(t, m); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				text := strings.Join(told, "\n")
				for _, want := range append(wants, "waits for a slot of the provisioning limit") {
					if !strings.Contains(text, want) {
						t.Errorf("it did not tell %q:\n%s", want, text)
					}
				}
			})
		})
	}
}

func TestErases_knowsStepsByName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"deploy.erase_devices": true, "deploy.erase_devices_metadata": true, "deploy.burnin_disk": true, "raid.create_configuration": true,
		"raid.delete_configuration": true, "deploy.EraseDisks": true, "vendor.Secure_WIPE": true, "deploy.burnin_cpu": false,
		"bios.factory_reset": false, "management.clear_job_queue": false, "firmware.update": false,
	} {
		kind, step, _ := strings.Cut(name, ".")
		if got := machine.Erases(ironic.CleanStep{Interface: kind, Step: step}); got != want {
			t.Errorf("%s erases: %v", name, got)
		}
	}
}

// Ironic's agent burns in all disks. A machine that keeps some is not cleaned with that, whatever the caller says.
func TestClean_leavesKeptDisks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step, kept string
		refused    bool
	}{
		"it keeps a disk":      {"burnin_disk", "D2", true},
		"it keeps none":        {"burnin_disk", "", false},
		"another step":         {"burnin_cpu", "D2", false},
		"a step that keeps it": {"erase_devices", "D2", false},
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := operable("manageable")
			if tt.kept != "" {
				fake.Set("node-000", "properties", map[string]any{"skip_block_devices": []any{map[string]any{"serial": tt.kept}}})
			}
			m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
			if err != nil {
				t.Fatal(err)
			}
			order := ironic.Order{Steps: []ironic.CleanStep{{Interface: "deploy", Step: tt.step}}}
			err = m.Clean(t.Context(), order, true, time.Hour)
			if failure.Is(err, machine.KindRefused) != tt.refused { // the fake has no agent with these steps, and fails otherwise
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Another client begins to deploy the machine after this run has decided to reach it. An NMI would crash the ramdisk, and other media would
// take it away.
func TestOperate_leavesOthersDeployment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"NMI", "media", "boot device"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := operable(operations[name].state)
				m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
				if err != nil {
					t.Fatal(err)
				}
				sent := 0
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method == http.MethodGet {
						return nil
					}
					if sent++; sent > 1 {
						return nil
					}
					fake.Set("node-000", "instance_uuid", "11111111-1111-4111-8111-111111111111")
					fake.Set("node-000", "provision_state", "wait call-back")
					return ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host conductor-1, please retry after the "+
						"current operation is completed.")
				}
				if err := operations[name].do(t, m); !failure.Is(err, machine.KindRefused) {
					t.Errorf("error %v, want a refusal", err)
				}
				if sent != 1 {
					t.Errorf("%d requests were sent, want 1", sent)
				}
			})
		})
	}
}
