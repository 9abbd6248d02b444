package machine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// running returns a fake with a machine that is on.
func running(ignores bool) *fakeironic.Server {
	fake := ironictest.Fleet(1)
	fake.StepTime = 20 * time.Second
	fake.IgnoresSoftOff = func(fakeironic.Node) bool { return ignores }
	fake.Set("node-000", "power_state", "power on")
	return fake
}

// restart restarts the machine of a fake. It returns the targets that were requested, and the text of PowerCut.
func restart(ctx context.Context, t *testing.T, fake *fakeironic.Server, how machine.OffMode,
	options ...func(*machine.Config),
) (sent []string, cut string, err error) {
	t.Helper()
	m, err := sitetest.NewClient(fake, options...).Machine(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	fake.ResetRequests()
	err = m.Reboot(ctx, how, time.Hour)
	for _, notice := range m.PowerCut() {
		cut += notice.Detail
	}
	return powerChanges(fake), cut, err
}

// powerChanges returns the targets of the power changes that a fake was asked for.
func powerChanges(fake *fakeironic.Server) (sent []string) {
	for _, r := range fake.Requests() {
		if _, target, found := strings.Cut(r.Body, `"target":"`); found && r.Method == http.MethodPut &&
			strings.HasSuffix(r.Path, "/states/power") {
			target, _, _ = strings.Cut(target, `"`)
			sent = append(sent, target)
		}
	}
	return sent
}

// A restart asks the operating system as power_off_mode says, and never sends "soft rebooting": an operating system may ignore that, and
// Ironic does not always see it.
func TestReboot_asAsked(t *testing.T) {
	t.Parallel()
	const hard, off, on = "rebooting", "soft power off", "power on"
	for name, tt := range map[string]struct {
		how          machine.OffMode
		set          func(*fakeironic.Server)
		ignores      bool
		sent         []string
		cut, problem string
	}{
		"hard":    {machine.OffHard, nil, true, []string{hard}, "", ""},
		"default": {"", nil, false, []string{hard}, "", ""},
		"soft":    {machine.OffSoft, nil, false, []string{off, on}, "", ""},
		"soft, ignored": {
			machine.OffSoft, nil, true,
			[]string{off},
			"",
			"is still on: Ironic has asked its operating system to shut down",
		},
		"graceful": {machine.OffGraceful, nil, false, []string{off, on}, "", ""},
		"graceful, ignored": {
			machine.OffGraceful, nil, true,
			[]string{off, hard},
			"lost its power without a shutdown: its operating system did not shut down within 3m0s", "",
		},
		"soft, unsupported": {machine.OffSoft, func(fake *fakeironic.Server) {
			fake.NoSoftPower = true
		}, false, []string{off}, "", "Set power_off_mode to graceful or hard"},
		"graceful, unsupported": {machine.OffGraceful, func(fake *fakeironic.Server) {
			fake.NoSoftPower = true
		}, false, []string{off, hard}, "the driver fake-hardware cannot ask", ""},
		"soft, never off":     {machine.OffSoft, neverOff, false, nil, "", "Set power_off_mode to graceful or hard, which cut its power"},
		"graceful, never off": {machine.OffGraceful, neverOff, false, []string{hard}, "disable_power_off is set on it", ""},
		"soft, off":           {machine.OffSoft, switchedOff, true, []string{on}, "", ""},
		"graceful, off":       {machine.OffGraceful, switchedOff, true, []string{on}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := running(tt.ignores)
				if tt.set != nil {
					tt.set(fake)
				}
				sent, cut, err := restart(t.Context(), t, fake, tt.how)
				if !slices.Equal(sent, tt.sent) || !strings.Contains(cut, tt.cut) || tt.cut == "" && cut != "" {
					t.Errorf("sent %v (cut: %q), want %v (cut: %q)", sent, cut, tt.sent, tt.cut)
				}
				if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
					t.Errorf("error %v, want %q", err, tt.problem)
				}
				if is := ironictest.NodeOf(t, fake, "node-000").PowerState; is != "power on" {
					t.Errorf("the machine is %s", is)
				}
			})
		})
	}
}

func neverOff(fake *fakeironic.Server)    { fake.Set("node-000", "disable_power_off", true) }
func switchedOff(fake *fakeironic.Server) { fake.Set("node-000", "power_state", "power off") }

// After Ctrl-C nothing is sent any more, also if the operating system ignores the request; the error says what becomes of the machine.
// The next run ends with the machine on.
func TestReboot_interrupted(t *testing.T) {
	t.Parallel()
	for _, how := range []machine.OffMode{machine.OffSoft, machine.OffGraceful} {
		for _, ignores := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ignores %t", how, ignores), func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := running(ignores)
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					time.AfterFunc(10*time.Second, stop)
					sent, cut, err := restart(ctx, t, fake, how)
					<-time.After(time.Hour)
					if !slices.Equal(sent, []string{"soft power off"}) || cut != "" || !failure.Is(err, failure.KindDown) ||
						!failure.IsInterrupted(err) {
						t.Fatalf("sent %v (cut: %q): %v", sent, cut, err)
					}
					if _, detail := failure.Explain("restart node-000", err); !strings.Contains(detail,
						"it is off, or shuts down, and was not switched on again. Apply again to switch it on.") {
						t.Errorf("the user reads: %s", detail)
					}
					want := []string{"power on"}
					if ignores {
						want = []string{"soft power off", "rebooting"}
						how = machine.OffGraceful
					}
					sent, _, err = restart(t.Context(), t, fake, how)
					if err != nil || !slices.Equal(sent, want) || ironictest.NodeOf(t, fake, "node-000").PowerState != "power on" {
						t.Errorf("the next run sent %v, want %v: %v; the machine is %s", sent, want, err,
							ironictest.NodeOf(t, fake, "node-000").PowerState)
					}
				})
			})
		}
	}
}

// The power cannot be switched on again: the error says that the machine is off.
func TestReboot_staysOff(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := running(false)
		fake.Fail = func(_ fakeironic.Node, verb string) string {
			if verb == "power on" {
				return "the BMC is silent"
			}
			return ""
		}
		_, _, err := restart(t.Context(), t, fake, machine.OffGraceful)
		_, detail := failure.Explain("restart node-000", err)
		if !strings.Contains(detail, `is "power off", not "power on"`) || !strings.Contains(detail, "the BMC is silent") {
			t.Errorf("the user reads: %s", detail)
		}
		fake.Fail, fake.Reject = nil, func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPut {
				return &fakeironic.Rejection{Status: http.StatusForbidden}
			}
			return nil
		}
		if _, _, err = restart(t.Context(), t, fake, machine.OffGraceful); failure.Is(err, failure.KindDown) {
			t.Errorf("a run that has not shut it down says so: %v", err)
		}
	})
}

// mortal is the transport of a run that is killed when a number of its requests have been answered.
type mortal struct {
	http.RoundTripper
	kill context.CancelFunc

	mu   sync.Mutex
	left int
}

// RoundTrip implements http.RoundTripper.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		m.kill()
		return nil, context.Canceled
	}
	m.left--
	return m.RoundTripper.RoundTrip(r)
}

// A run is killed after each of its requests. The next one restarts the machine, or switches it on if it was shut down: it is on in the
// end, and has started once, or twice if it was on again when the run was killed.
func TestReboot_killedAfterEveryRequest(t *testing.T) {
	t.Parallel()
	for _, how := range []machine.OffMode{machine.OffHard, machine.OffSoft, machine.OffGraceful} {
		for _, ignores := range []bool{false, how == machine.OffGraceful} {
			t.Run(fmt.Sprintf("%s, ignores %t", how, ignores), func(t *testing.T) {
				t.Parallel()
				shut := 0 // how often the machine was off when the next run began
				for requests, alive := 0, false; !alive && !t.Failed(); requests++ {
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake := running(ignores)
						ctx, kill := context.WithCancel(t.Context())
						defer kill()
						dies := func(cfg *machine.Config) { cfg.Transport = &mortal{RoundTripper: fake, kill: kill, left: requests} }
						_, err := sitetest.NewClient(fake, dies).Of(ctx, "node-000", func(m *machine.Machine) error {
							return m.Reboot(ctx, how, time.Hour)
						})
						alive = err == nil
						<-time.After(time.Hour)
						if ironictest.NodeOf(t, fake, "node-000").PowerState == "power off" {
							shut++
						}
						before := powerChanges(fake)
						if alive {
							return
						}
						sent, _, err := restart(t.Context(), t, fake, how)
						if err != nil || ironictest.NodeOf(t, fake, "node-000").PowerState != "power on" {
							t.Errorf("killed after %d requests (%v), then sent %v: %v; the machine is %s", requests, before, sent, err,
								ironictest.NodeOf(t, fake, "node-000").PowerState)
						}
						if slices.Equal(before, []string{"soft power off"}) && !ignores && !slices.Equal(sent, []string{"power on"}) {
							t.Errorf("the machine that was shut down was sent %v", sent)
						}
					})
				}
				if !ignores && how != machine.OffHard && shut == 0 {
					t.Error("no run was killed while the machine was off")
				}
			})
		}
	}
}

// A machine that restarts softly takes its slot before it shuts down, and is switched on again at once.
func TestReboot_softTakesOneSlot(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		fake.StepTime = time.Minute
		fake.IgnoresSoftOff = func(n fakeironic.Node) bool { return n.Name == "node-001" }
		client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = sitetest.UpTo(1) })
		ended := make(chan error)
		for _, n := range fake.Nodes() {
			fake.Set(n.UUID, "power_state", "power on")
			go func() {
				_, err := client.Of(t.Context(), n.UUID, func(m *machine.Machine) error {
					return m.Reboot(t.Context(), machine.OffGraceful, time.Hour)
				})
				ended <- err
			}()
		}
		for left := 3; left > 0; {
			select {
			case err := <-ended:
				left--
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				away := 0
				for _, n := range fake.Nodes() {
					if n.Raw["target_power_state"] != nil || n.PowerState == "power off" {
						away++
					}
				}
				if away > 1 {
					t.Fatalf("%d machines are off or change their power at once", away)
				}
			}
		}
	})
}
