package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// databases is hardware_changes of hosts that take turns.
const databases = `hardware_changes = { on_active = "service", rollout = { group = "databases", max_unavailable = 1 } }`

// members returns hosts, each with a deployment, whose names begin with the test's own.
func members(s *site.Site, n int, host string, deployment ...string) string {
	return s.Provider() + fmt.Sprintf(`
resource "metal_host" "m" {
  count        = %d
  name         = "%s-${count.index}"
  driver       = "fake-hardware"
  target_state = "available"
  %s
}

resource "metal_deployment" "m" {
  count   = %d
  node_id = metal_host.m[count.index].id
  %s
}
`, n, s.Name("m"), host, n, strings.Join(append([]string{}, deployment...), "\n  "))
}

// bios is a value of a BIOS setting.
func bios(value string) string {
	return fmt.Sprintf(`bios_settings = { ProcVirtualization = %q }`, value)
}

// serviced returns how many services the members were sent.
func serviced(t *testing.T, s *site.Site, n int) (sent int) {
	t.Helper()
	for i := range n {
		id := site.Text(s.Node(fmt.Sprintf("%s-%d", s.Name("m"), i))["uuid"])
		for _, step := range stepsSent(t, s, id) {
			if step == "bios.apply_configuration" {
				sent++
			}
		}
	}
	return sent - n // the first time, each was cleaned
}

// One machine of the group after the other is serviced. A change of both resources services and rebuilds each, with any number of
// operations at once.
func TestAccHostRollout_servicesTakeTurns(t *testing.T) {
	t.Parallel()
	for _, parallelism := range []string{"1", "10"} {
		t.Run(parallelism, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			s.SkipBefore(t, 87)
			const group = `rollout = { group = "databases", max_unavailable = 1 }`
			w := acctest.NewWorkspace(t, members(s, 3, bios("Enabled")+"\n"+databases, acctest.Image("v1"), group))
			w.Must("apply", "-auto-approve")
			defer w.Must("destroy", "-auto-approve")
			w.Configure(members(s, 3, bios("Disabled")+"\n"+databases, acctest.Image("v1"), group))
			output, _ := w.Plan()
			acctest.Mention(t, output, "Deployed machine restarts", "0 to add, 3 to change, 0 to destroy")
			w.Must("apply", "-auto-approve", "-parallelism="+parallelism)
			acctest.NoChanges(t, w)
			w.Configure(members(s, 3, bios("Enabled")+"\n"+databases, acctest.Image("v2"), group))
			w.Must("apply", "-auto-approve", "-parallelism="+parallelism)
			acctest.NoChanges(t, w)
			if s.Fake == nil {
				return
			}
			if n := serviced(t, s, 3); n != 6 {
				t.Errorf("%d services were sent", n)
			}
			if n := s.Fake.MaxBusy("servicing", "service wait"); n != 1 {
				t.Errorf("%d machines were serviced at once", n)
			}
		})
	}
}

// A service that fails stops the others. Their states say what they lack, and the next apply services them.
func TestFakeHostRollout_failedServiceStopsTheOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		settings, says string
		fails          bool
	}{
		"error": {"", "Error: Machine was not started", true},
		"warn":  {`on_failure = "warn"`, "Warning: Machine was not started", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := true
			s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
				if broken && verb == "service" {
					return "it broke"
				}
				return ""
			}})
			config := func(value string) string {
				return members(s, 3, bios(value)+"\n"+databases+"\n"+tt.settings, acctest.Image("v1"))
			}
			w := acctest.NewWorkspace(t, config("Enabled"))
			w.Must("apply", "-auto-approve")
			defer w.Must("destroy", "-auto-approve")
			w.Configure(config("Disabled"))
			output, code := w.Run("apply", "-auto-approve")
			if (code != 0) != tt.fails {
				t.Errorf("the exit code is %d", code)
			}
			// of similar warnings, a CLI shows one
			acctest.Mention(t, output, tt.says, `rollout group "databases" lacks `+s.Name("m")+"-", "Nothing was sent to ",
				`on_active = "wait"`, "it broke")
			if n := serviced(t, s, 3); n != 1 {
				t.Errorf("%d services were sent:\n%s", n, output)
			}
			for i := range 3 {
				of := acctest.InState(t, w, fmt.Sprintf("metal_host.m[%d]", i))
				if open, _ := of.Values["pending_changes"].([]any); !slices.Equal(open, []any{"bios_settings"}) {
					t.Errorf("pending_changes of host %d is %v", i, open)
				}
			}
			broken = false
			output, _ = w.Plan()
			acctest.Mention(t, output, "0 to add, 3 to change, 0 to destroy")
			w.Must("apply", "-auto-approve")
			acctest.NoChanges(t, w)
			if n, most := serviced(t, s, 3), s.Fake.MaxBusy("servicing", "service wait"); n != 4 || most != 1 {
				t.Errorf("%d services were sent, %d at once", n, most)
			}
		})
	}
}

// A host that Terraform forgets is no member any more.
func TestFakeHostRollout_forgottenHostLeavesNoNote(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		return map[string]string{"service": "it broke"}[verb]
	}})
	id := deployedWithBMC(t, s)
	config := func(value string) string {
		return withBMC(s, acctest.Target("available"), bios(value), databases, `on_destroy = "forget"`)
	}
	w := acctest.NewWorkspace(t, config("Disabled"))
	w.Must("import", acctest.HostAddress, id)
	w.Must("apply", "-auto-approve")
	w.Configure(config("Enabled"))
	acctest.Fails(t, w, acctest.Apply(), "it broke")
	if extra, _ := s.Node(id)["extra"].(map[string]any); extra["terraform_metal_host_turn"] == nil {
		t.Error("the failed service has left no note")
	}
	w.Must("destroy", "-auto-approve")
	if extra, _ := s.Node(id)["extra"].(map[string]any); extra["terraform_metal_host_turn"] != nil {
		t.Errorf("the node has still %v", extra)
	}
}

func TestFakeHostRollout_refusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider())
	for config, want := range map[string]string{
		`hardware_changes = { rollout = { group = "g", max_unavailable = 1 } }`:                                           `Set on_active = "service", or remove rollout`,
		`hardware_changes = { on_active = "wait", rollout = { canary = 1 } }`:                                             `Set on_active = "service", or remove rollout`,
		`hardware_changes = { on_active = "service", rollout = { max_unavailable = 1 } }`:                                 "Set rollout.group, with the same name for all members",
		`hardware_changes = { on_active = "service", rollout = { group = "g" } }`:                                         "rollout.group alone limits nothing",
		`hardware_changes = { on_active = "service", rollout = { pause = "5m" } }`:                                        "rollout.pause has an effect only with max_unavailable or canary",
		`hardware_changes = { on_active = "service", rollout = { group = "databases", max_unavailable = 2, canary = 1 }}`: `rollout group "databases" must have the same settings, but another metal_deployment or metal_host has another max_unavailable`,
	} {
		w.Configure(members(s, 1, config, acctest.Image("v1"), `rollout = { group = "databases", max_unavailable = 1 }`))
		acctest.Fails(t, w, []string{"plan"}, want)
	}
}
