package machine_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestPower_managedWithBMC(t *testing.T) {
	t.Parallel()
	if !machine.PowerManaged(&ironic.Node{Driver: "fake-hardware"}) ||
		!machine.PowerManaged(&ironic.Node{Driver: "redfish", DriverInfo: map[string]any{"redfish_address": "https://b"}}) {
		t.Error("a known BMC is not managed")
	}
	if byHand := (&ironic.Node{Driver: "manual-management", PowerInterface: "fake"}); !machine.PowerManaged(byHand) {
		t.Error("a machine that an operator switches is not managed")
	}
	if machine.PowerManaged(&ironic.Node{Driver: "ipmi", DriverInfo: map[string]any{"ipmi_username": "root"}}) {
		t.Error("a host without a BMC address is managed")
	}
}

// An earlier run that was killed, or another client, has begun to switch the machine: Ironic locks it until that has ended.
func TestPower_waitsForChangeInProgress(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]int{"power on": 0, "power off": 1} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = 5 * time.Minute
				client, id := sitetest.NewClient(fake), fake.Nodes()[0].UUID
				fake.Set(id, "power_state", map[string]string{"power on": "power off", "power off": "power on"}[target])
				ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": target})
				machine, err := client.Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				fake.ResetRequests()
				if err := machine.SetPower(t.Context(), true, time.Hour); err != nil {
					t.Error(err)
				}
				if sent := ironictest.Count(fake, http.MethodPut, "/v1/nodes/"+id+"/states/power"); sent != want ||
					ironictest.NodeOf(t, fake, id).PowerState != "power on" {
					t.Errorf("%d power changes were requested, want %d; the machine is %s", sent, want,
						ironictest.NodeOf(t, fake, id).PowerState)
				}
			})
		})
	}
}

// Another client switches the machine off after this run has read it. Ironic refuses all changes until that has ended.
func TestPower_waitsForChangeBegunSince(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ctx context.Context, m *machine.Machine) error{
		"off":     func(ctx context.Context, m *machine.Machine) error { return m.SetPower(ctx, false, time.Hour) },
		"restart": func(ctx context.Context, m *machine.Machine) error { return m.Reboot(ctx, machine.OffHard, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = 5 * time.Minute
				client, id := sitetest.NewClient(fake), fake.Nodes()[0].UUID
				fake.Set(id, "power_state", "power on")
				machine, err := client.Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "power off"})
				if err := change(t.Context(), machine); err != nil {
					t.Error(err)
				}
				if want := map[string]string{"off": "power off", "restart": "power on"}[name]; ironictest.NodeOf(t, fake,
					id).PowerState != want {
					t.Errorf("the machine is %s, want %s", ironictest.NodeOf(t, fake, id).PowerState, want)
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
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = 5 * time.Minute
				client, id := sitetest.NewClient(fake), fake.Nodes()[0].UUID
				fake.Set(id, "power_state", map[string]string{
					"power on": "power off", "power off": "power on",
					"rebooting": "power on",
				}[target])
				ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": target})
				m, err := client.Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				fake.ResetRequests()
				if err := m.Reboot(t.Context(), machine.OffHard, time.Hour); err != nil {
					t.Error(err)
				}
				if sent := ironictest.Count(fake, http.MethodPut, "/v1/nodes/"+id+"/states/power"); sent != 1 ||
					ironictest.NodeOf(t, fake, id).PowerState != "power on" {
					t.Errorf("%d power changes were requested, want 1; the machine is %s", sent, ironictest.NodeOf(t, fake, id).PowerState)
				}
			})
		})
	}
}

// The same holds for an edit of the node.
func TestPower_editWaitsForChangeInProgress(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = 5 * time.Minute
		client, id := sitetest.NewClient(fake), fake.Nodes()[0].UUID
		machine, err := client.Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "power on"})
		if err := machine.Patch(t.Context(), sitetest.Setting("/description", "new")); err != nil || machine.Node().Description != "new" {
			t.Errorf("the description is %q: %v", machine.Node().Description, err)
		}
	})
}

// switched is what a call of SwitchOff has done.
type switched struct {
	sent []string // targets with their time-outs
	cut  string
	err  error
}

// switchOff switches the machine of a fake off.
func switchOff(t *testing.T, fake *fakeironic.Server, how machine.OffMode) switched {
	t.Helper()
	client, id := sitetest.NewClient(fake), fake.Nodes()[0].UUID
	machine, err := client.Machine(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	fake.ResetRequests()
	s := switched{err: machine.SwitchOff(t.Context(), how, time.Hour)}
	for _, notice := range machine.PowerCut() {
		_, why, _ := strings.Cut(notice.Detail, "without a shutdown: ")
		s.cut = strings.TrimSuffix(why, ".")
	}
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut {
			s.sent = append(s.sent, r.Body)
		}
	}
	return s
}

func TestPower_switchedOffAsAsked(t *testing.T) {
	t.Parallel()
	const hard, soft, patient = `{"target":"power off"}`, `{"target":"soft power off"}`, `{"target":"soft power off","timeout":180}`
	for _, tt := range []struct {
		name         string
		how          machine.OffMode
		ignores, no  bool
		sent         []string
		cut, problem string
	}{
		{"hard", machine.OffHard, false, false, []string{hard}, "", ""},
		{"default", "", false, false, []string{hard}, "", ""},
		{"soft", machine.OffSoft, false, false, []string{soft}, "", ""},
		{
			"soft, ignored", machine.OffSoft, true, false,
			[]string{soft},
			"",
			`is still on: Ironic has asked its operating system to shut down: Failed to change power state`,
		},
		{"soft, unsupported", machine.OffSoft, false, true, []string{soft}, "", "Set power_off_mode to graceful or hard"},
		{"graceful", machine.OffGraceful, false, false, []string{patient}, "", ""},
		{
			"graceful, ignored", machine.OffGraceful, true, false,
			[]string{patient, hard},
			"its operating system did not shut down within 3m0s", "",
		},
		{
			"graceful, unsupported", machine.OffGraceful, false, true,
			[]string{patient, hard},
			"the driver fake-hardware cannot ask an operating system to shut down", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime, fake.NoSoftPower = 5*time.Second, tt.no
				fake.IgnoresSoftOff = func(fakeironic.Node) bool { return tt.ignores }
				fake.Set("node-000", "power_state", "power on")
				got := switchOff(t, fake, tt.how)
				if !slices.Equal(got.sent, tt.sent) || got.cut != tt.cut {
					t.Errorf("sent %v (cut: %q), want %v (cut: %q)", got.sent, got.cut, tt.sent, tt.cut)
				}
				if tt.problem == "" && got.err != nil || tt.problem != "" &&
					(got.err == nil || !strings.Contains(got.err.Error(), tt.problem)) {
					t.Errorf("error %v, want %q", got.err, tt.problem)
				}
				if is := ironictest.NodeOf(t, fake, "node-000").PowerState; tt.problem == "" && is != "power off" {
					t.Errorf("the machine is %s", is)
				}
			})
		})
	}
}

// A machine that is off, or whose power state Ironic does not know, is asked nothing.
func TestPower_onlyRunningMachineIsAsked(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]int{"power off": 0, "": 1} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "power_state", state)
			if got := switchOff(t, fake, machine.OffGraceful); got.err != nil || len(got.sent) != want ||
				strings.Contains(strings.Join(got.sent, ""), "soft") {
				t.Errorf("%q: sent %v, %v", state, got.sent, got.err)
			}
		})
	}
}

// Another client has begun to start the machine, which Ironic still shows as off. It is switched off when it is on.
func TestPower_switchedOffAfterAnotherClientStartsIt(t *testing.T) {
	t.Parallel()
	for _, how := range []machine.OffMode{machine.OffHard, machine.OffGraceful} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			fake.StepTime = time.Minute
			fake.Set("node-000", "power_state", "power off")
			ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/power", map[string]any{"target": "power on"})
			if got := switchOff(t, fake, how); got.err != nil || len(got.sent) != 1 ||
				ironictest.NodeOf(t, fake, "node-000").PowerState != "power off" {
				t.Errorf("%s: sent %v, %v; the machine is %s", how, got.sent, got.err, ironictest.NodeOf(t, fake, "node-000").PowerState)
			}
		})
	}
}

func TestPower_disabledPowerOffSendsNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []machine.OffMode{machine.OffHard, machine.OffSoft, machine.OffGraceful} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "power_state", "power on")
			fake.Set("node-000", "disable_power_off", true)
			if got := switchOff(t, fake, how); got.err == nil || !strings.Contains(got.err.Error(), "disable_power_off is set on it") ||
				len(got.sent) > 0 {
				t.Errorf("%s: sent %v, %v", how, got.sent, got.err)
			}
		})
	}
}

// Another client begins to deploy the machine after this run has decided to change its power. That would end the deployment.
func TestPower_leavesOthersDeployment(t *testing.T) {
	t.Parallel()
	changes := map[string]func(ctx context.Context, m *machine.Machine) error{
		"off": func(ctx context.Context, m *machine.Machine) error { return m.SetPower(ctx, false, time.Hour) },
		"off, graceful": func(ctx context.Context, m *machine.Machine) error {
			return m.SwitchOff(ctx, machine.OffGraceful, time.Hour)
		},
		"restart":       func(ctx context.Context, m *machine.Machine) error { return m.Reboot(ctx, machine.OffHard, time.Hour) },
		"restart, soft": func(ctx context.Context, m *machine.Machine) error { return m.Reboot(ctx, machine.OffSoft, time.Hour) },
		"boot mode": func(ctx context.Context, m *machine.Machine) error {
			return m.SetBoot(ctx, machine.BootSettings{Mode: ironic.BootMode("bios")}, time.Hour)
		},
		"action soft off": func(ctx context.Context, m *machine.Machine) error {
			return m.ChangePower(ctx, machine.ActionSoftOff, time.Hour)
		},
	}
	locked := ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host conductor-1, please retry after the current "+
		"operation is completed.")
	for name, change := range changes {
		for when, answer := range map[string]*fakeironic.Rejection{"locked": locked, "lost": {Drop: true}} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := ironictest.Fleet(1)
					fake.Set("node-000", "power_state", "power on")
					m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
					if err != nil {
						t.Fatal(err)
					}
					deployOnce := ironictest.Once(http.MethodPut, "/v1/nodes/", answer)
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						rejection := deployOnce(r)
						if rejection != nil {
							fake.Set("node-000", "instance_uuid", "11111111-1111-4111-8111-111111111111")
							fake.Set("node-000", "provision_state", "wait call-back")
						}
						return rejection
					}
					fake.ResetRequests()
					err = change(t.Context(), m)
					if !failure.Is(err, machine.KindRefused) || !strings.Contains(err.Error(),
						`it is in state "wait call-back", and reserved by 11111111-1111-4111-8111-111111111111`) {
						t.Errorf("error %v, want a refusal that tells the state and the reservation", err)
					}
					if sent := ironictest.Count(fake, http.MethodPut, "/v1/nodes/"); sent != 1 {
						t.Errorf("%d requests were sent, want 1", sent)
					}
				})
			})
		}
	}
}

// The machine was being restarted when this run read it. By the end of that, another client deploys it.
func TestPower_leavesDeploymentBegunDuringChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ctx context.Context, m *machine.Machine) error{
		"off": func(ctx context.Context, m *machine.Machine) error { return m.SetPower(ctx, false, time.Hour) },
		"off, graceful": func(ctx context.Context, m *machine.Machine) error {
			return m.SwitchOff(ctx, machine.OffGraceful, time.Hour)
		},
		"restart": func(ctx context.Context, m *machine.Machine) error { return m.Reboot(ctx, machine.OffHard, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = 5 * time.Minute
				fake.Set("node-000", "power_state", "power on")
				ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/power", map[string]any{"target": "rebooting"})
				m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
				if err != nil {
					t.Fatal(err)
				}
				fake.ResetRequests()
				time.AfterFunc(4*time.Minute, func() { fake.Set("node-000", "provision_state", "wait call-back") })
				if err := change(t.Context(), m); !failure.Is(err, machine.KindRefused) {
					t.Errorf("error %v, want a refusal", err)
				}
				if sent := powerChanges(fake); len(sent) > 0 {
					t.Errorf("sent %v", sent)
				}
			})
		})
	}
}

// The time in which a machine waits for a slot is no time in which a conductor has locked it.
func TestPower_waitsForLockAfterTheQueue(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		fake.Set("node-000", "provision_state", "cleaning")
		client, id := sitetest.NewClient(fake, sitetest.Slots(1)), ironictest.NodeOf(t, fake, "node-001").UUID
		path := "/v1/nodes/" + id + "/states/power"
		fake.Reject = ironictest.Once(http.MethodPut, path, ironictest.Fault(http.StatusConflict,
			"Node node-001 is locked by host localhost, please retry after the current operation is completed."))
		go func() {
			time.Sleep(2 * time.Hour)
			fake.Set("node-000", "provision_state", "available")
		}()
		if _, err := client.SetPower(t.Context(), id, true, 10*time.Minute); err != nil {
			t.Error(err)
		}
		if sent := ironictest.Count(fake, http.MethodPut, path); sent != 2 {
			t.Errorf("%d power changes were requested, want 2", sent)
		}
	})
}
