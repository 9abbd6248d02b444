package machine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// moves are the requests that move a machine: where it is before, what sends the request, the end of its path, and as what the fake knows
// it when it executes it.
var moves = map[string]struct {
	state, power string
	do           func(context.Context, *machine.Machine) error
	path, as     string
}{
	"restart": {"active", "power on", func(ctx context.Context, m *machine.Machine) error {
		return m.Reboot(ctx, machine.OffHard, time.Hour)
	}, "/states/power", "rebooting"},
	"soft restart": {"active", "power on", power(machine.ActionSoftReboot), "/states/power", "soft power off"},
	"on":           {"active", "power off", power(machine.ActionOn), "/states/power", "power on"},
	"off":          {"active", "power on", power(machine.ActionOff), "/states/power", "power off"},
	"soft off":     {"active", "power on", power(machine.ActionSoftOff), "/states/power", "soft power off"},
	"deploy":       {"available", "power off", reach(states.GoalDeployed), "/states/provision", "active"},
	"rebuild":      {"active", "power on", reach(states.GoalRebuilt), "/states/provision", "rebuild"},
	"rescue":       {"active", "power on", rescue, "/states/provision", "rescue"},
	"boot rescue":  {"rescue", "power on", rescue, "/states/provision", "rescue"},
	"unrescue": {"rescue", "power on", func(ctx context.Context, m *machine.Machine) error {
		return deploy.LeaveRescue(ctx, m, "", time.Hour)
	}, "/states/provision", "unrescue"},
	"service": {"active", "power on", func(ctx context.Context, m *machine.Machine) error {
		return m.Service(ctx, harmless, time.Hour)
	}, "/states/provision", "service"},
	"clean": {"manageable", "power off", func(ctx context.Context, m *machine.Machine) error {
		return m.Clean(ctx, harmless, false, time.Hour)
	}, "/states/provision", "clean"},
	"inspect": {"manageable", "power off", reach(states.GoalInspected), "/states/provision", "inspect"},
	"provide": {"manageable", "power off", reach(states.GoalAvailable), "/states/provision", "provide"},
	"verify":  {"enroll", "power off", reach(states.GoalManageable), "/states/provision", "manage"},
	"unhold": {"clean hold", "power on", func(ctx context.Context, m *machine.Machine) error {
		return m.Unhold(ctx, time.Hour)
	}, "/states/provision", "unhold"},
	"boot mode": {"manageable", "power off", func(ctx context.Context, m *machine.Machine) error {
		return m.SetBoot(ctx, machine.BootSettings{Mode: ironic.BootBIOS}, time.Hour)
	}, "/states/boot_mode", "boot_mode"},
	"NMI": {"active", "power on", func(ctx context.Context, m *machine.Machine) error {
		return m.SendNMI(ctx, time.Hour)
	}, "/management/inject_nmi", "inject_nmi"},
	"media": {"active", "power on", func(ctx context.Context, m *machine.Machine) error {
		return m.ChangeMedia(ctx, ironic.DeviceCDROM, "https://images.example.com/a.iso", time.Hour)
	}, "/vmedia", "https://images.example.com/a.iso"},
}

func power(action machine.PowerAction) func(context.Context, *machine.Machine) error {
	return func(ctx context.Context, m *machine.Machine) error { return m.ChangePower(ctx, action, time.Hour) }
}

func reach(goal states.Goal) func(context.Context, *machine.Machine) error {
	return func(ctx context.Context, m *machine.Machine) error { return m.Reach(ctx, goal, 2*time.Hour) }
}

func rescue(ctx context.Context, m *machine.Machine) error {
	return deploy.EnterRescue(ctx, m, "", "secret", 2*time.Hour)
}

// movable returns a fake with one machine behind a Redfish BMC, and what the fake executes on it.
func movable(t *testing.T, state, power string) (fake *fakeironic.Server, done *[]string) {
	t.Helper()
	fake, done = &fakeironic.Server{}, &[]string{}
	ironictest.AsOther(t, fake, http.MethodPost, "nodes", map[string]any{
		"name": "node-000", "driver": "redfish", "driver_info": map[string]any{
			"redfish_address": "https://192.0.2.1",
			"deploy_kernel":   "https://images.example.com/kernel", "deploy_ramdisk": "https://images.example.com/ramdisk",
		},
		"boot_interface": "redfish-virtual-media", "rescue_interface": "agent",
	})
	fake.StepTime = 20 * time.Second
	fake.Fail = func(node fakeironic.Node, verb string) string {
		if node.ProvisionState != "deleting" {
			*done = append(*done, verb)
		}
		return ""
	}
	fake.ImageFault = func(url string) string {
		*done = append(*done, url)
		return ""
	}
	for field, value := range map[string]any{
		"boot_mode": "uefi", "instance_info": map[string]any{
			"image_source":   "https://images.example.com/a.qcow2",
			"image_checksum": "d41d8cd98f00b204e9800998ecf8427e",
		},
		"provision_state": state, "target_provision_state": "manageable", "power_state": power, "last_error": "of long ago",
	} {
		fake.Set("node-000", field, value)
	}
	return fake, done
}

// lateAnswers are what may become of a request to which no answer of Ironic arrives.
var lateAnswers = map[string]*fakeironic.Rejection{
	"executed, connection lost": ironictest.Lost(),
	"executed, 502":             {Status: http.StatusBadGateway, After: true},
	"executed, 504":             {Status: http.StatusGatewayTimeout, After: true},
	"executed after 250ms":      {Status: http.StatusGatewayTimeout, Late: 250 * time.Millisecond},
	"executed after 4s":         {Status: http.StatusGatewayTimeout, Late: 4 * time.Second},
	"executed after 75s":        {Status: http.StatusGatewayTimeout, Late: 75 * time.Second},
	"connection lost":           {Drop: true},
	"503":                       {Status: http.StatusServiceUnavailable, Body: "<html>no server is available</html>"},
}

// A machine gets each request once, whatever becomes of the answer: the provider goes on if the node shows what has happened, repeats
// the request if Ironic never executes it, and else says that it does not know.
func TestUnanswered_isNotExecutedTwice(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		for loss, rejection := range lateAnswers {
			t.Run(name+": "+loss, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, done := movable(t, move.state, move.power)
					client := sitetest.NewClient(fake)
					<-time.After(time.Minute)
					pending := true
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if !pending || r.Method == http.MethodGet || r.Method == http.MethodDelete ||
							!strings.HasSuffix(r.URL.Path, move.path) {
							return nil
						}
						pending = false
						return rejection
					}
					_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error { return move.do(t.Context(), m) })
					<-time.After(10 * time.Minute)
					fake.Node("node-000")
					times := len(slices.DeleteFunc(slices.Clone(*done), func(what string) bool { return what != move.as }))
					executed := rejection.After || rejection.Late > 0
					silent := move.path == "/vmedia" || move.path == "/management/inject_nmi" // a node shows nothing of these
					switch unsure := failure.Is(err, machine.KindUnanswered); {
					case times > 1 || times == 0 && !unsure:
						t.Errorf("executed %d times: %v; error: %v", times, *done, err)
					case unsure && !silent, executed && silent && !unsure, !unsure && err != nil:
						t.Errorf("the error is %v", err)
					}
				})
			})
		}
	}
}

// Ironic tells by last_error alone that a change of power, firmware or media that it has accepted has come to nothing.
func TestPower_failureIsInLastErrorOnly(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		if move.path == "/states/provision" || move.path == "/management/inject_nmi" { // fail by state, and at once
			continue
		}
		for fault, set := range map[string]func(fake *fakeironic.Server){
			"at its end": func(fake *fakeironic.Server) {
				fake.Fail = func(fakeironic.Node, string) string { return "the BMC is silent" }
				fake.ImageFault = func(string) string { return "the BMC is silent" }
			},
			"at once": func(fake *fakeironic.Server) {
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, move.path) {
						return nil
					}
					return &fakeironic.Rejection{Fails: "the BMC is silent"}
				}
			},
		} {
			t.Run(name+" "+fault, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, _ := movable(t, move.state, move.power)
					set(fake)
					_, err := sitetest.NewClient(fake).Of(t.Context(), "node-000", func(m *machine.Machine) error {
						return move.do(t.Context(), m)
					})
					if err == nil || !strings.Contains(err.Error(), "the BMC is silent") {
						t.Fatalf("the error is %v", err)
					}
					if _, detail := failure.Explain("restart it", err); !strings.Contains(detail, "the BMC is silent") {
						t.Errorf("it is explained by %q", detail)
					}
				})
			})
		}
	}
}

// An old last_error is not the failure of a restart that succeeds.
func TestPower_olderErrorIsNotAFailure(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, _ := movable(t, "active", "power on")
		if _, err := sitetest.NewClient(fake).Of(t.Context(), "node-000", func(m *machine.Machine) error {
			return m.Reboot(t.Context(), machine.OffHard, time.Hour)
		}); err != nil {
			t.Error(err)
		}
	})
}

// Ironic's policy can hide driver_internal_info: then a node does not show whether it was restarted.
func TestUnanswered_hiddenEvidenceIsAnError(t *testing.T) {
	t.Parallel()
	for loss, executed := range map[string]bool{"executed, 504": true, "connection lost": false} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, done := movable(t, "active", "power on")
			fake.Set("node-000", "driver_internal_info",
				map[string]any{"content": "** Redacted - Requires baremetal:node:get:driver_internal_info permission. **"})
			fake.StepTime = 0 // it is over when the node is read
			client := sitetest.NewClient(fake)
			<-time.After(time.Minute)
			fake.Reject = ironictest.Once(http.MethodPut, "/v1/nodes/"+fake.Nodes()[0].UUID+"/states/power", lateAnswers[loss])
			_, err := client.Of(t.Context(), "node-000", func(m *machine.Machine) error {
				return m.Reboot(t.Context(), machine.OffHard, time.Hour)
			})
			if failure.Is(err, machine.KindUnanswered) != executed || len(*done) != 1 {
				t.Errorf("%s: %v; executed: %v", loss, err, *done)
			}
			if executed {
				if _, detail := failure.Explain("restart node node-000", err); !strings.Contains(detail, "It was not repeated") ||
					!strings.Contains(detail, "Look at the machine") {
					t.Errorf("it is explained by %q", detail)
				}
			}
		})
	}
}

// A request counts as lost only some time after Ironic answers again: one that a hanging API has received is executed then.
func TestUnanswered_hangingIronic(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, done := movable(t, "active", "power on")
		client := sitetest.NewClient(fake)
		m, err := client.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		var until time.Time
		sent := 0
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if until.IsZero() && r.Method == http.MethodPut {
				until = time.Now().Add(20 * time.Minute)
			}
			hangs := time.Until(until)
			switch {
			case hangs <= 0:
				return nil
			case r.Method == http.MethodPut:
				sent++
				return &fakeironic.Rejection{Drop: true, Late: hangs + 10*time.Second}
			}
			return &fakeironic.Rejection{Drop: true}
		}
		fake.ResetRequests()
		if err := m.Reboot(t.Context(), machine.OffHard, time.Hour); err != nil || fmt.Sprint(*done) != "[rebooting]" || sent != 1 {
			t.Errorf("sent %d, executed %v: %v", sent, *done, err)
		}
	})
}

// The record of a machine that waits for a slot may be older than a restart by another client, which is not taken for the lost one.
func TestUnanswered_restartByAnotherClientIsNotOurs(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, done := movable(t, "active", "power on")
		client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = sitetest.UpTo(1) })
		on, err := client.Machine(t.Context(), "node-000")
		if err != nil {
			t.Fatal(err)
		}
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/power", map[string]any{"target": "rebooting"})
		<-time.After(time.Hour)
		fake.Reject = ironictest.Once(http.MethodPut, "/v1/nodes/"+on.Node().UUID+"/states/power", &fakeironic.Rejection{Drop: true})
		if err := on.Reboot(t.Context(), machine.OffHard, time.Hour); !failure.Is(err, machine.KindUnanswered) {
			t.Errorf("Reboot = %v; executed: %v", err, *done)
		}
	})
}
