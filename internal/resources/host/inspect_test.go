package host_test

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// recabled is inspect_triggers with a value.
func recabled(value string) string {
	return "inspect_triggers = { recabled = " + acctest.Quoted(value) + " }"
}

// Any change of inspect_triggers inspects again: human, saved and JSON plans show it. A removal does nothing.
func TestAccHost_inspectTriggersInspectAgain(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, hostConfig(s, recabled("2026-01")))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	id := site.Text(s.Node(s.Name("h"))["uuid"])
	site.WantVerbs(t, s, id, "manage") // a new host only records them
	acctest.NoChanges(t, w)

	for _, value := range []string{"2026-02", "2026-03"} {
		before := s.Node(id)["inspection_finished_at"]
		site.ForgetVerbs(s)
		w.Configure(hostConfig(s, recabled(value)))
		output, _ := w.Plan()
		acctest.Mention(t, output, `"recabled" = "2026-0`, `-> "`+value+`"`, "Inspection boots the machine", "Ironic inspects host "+s.Name("h")+" again")
		acctest.NeverMention(t, output, "Cleaning erases data")
		change := w.Save()[acctest.HostAddress]
		want := map[string]any{"recabled": value}
		if !reflect.DeepEqual(change.After["inspect_triggers"], want) || reflect.DeepEqual(change.Before["inspect_triggers"], want) || change.Unknown["provision_state"] != true {
			t.Errorf("the saved plan has %+v", change)
		}
		w.Must("apply", "saved")
		site.WantVerbs(t, s, id, "inspect")
		if after := s.Node(id)["inspection_finished_at"]; after == nil || after == before {
			t.Errorf("the node was inspected at %v, before at %v", after, before)
		}
		acctest.NoChanges(t, w)
	}

	site.ForgetVerbs(s)
	w.Configure(hostConfig(s))
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, id)
	if extra, _ := s.Node(id)["extra"].(map[string]any); extra["terraform_metal_inspection"] != nil {
		t.Errorf("the note of the inspection has stayed: %v", extra)
	}
	w.Configure(hostConfig(s, recabled("2026-03")))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Inspection boots the machine") // adding them is a change
	site.WantVerbs(t, s, id, "inspect")
	acctest.NoChanges(t, w)
}

// An available host leaves the pool for the inspection, and is cleaned on its way back, unless Ironic does not clean it.
func TestAccHost_inspectTriggersOfAvailableHost(t *testing.T) {
	for name, tt := range map[string]struct{ cleans, warning string }{
		"cleaned":     {"true", "Ironic inspects and cleans it on the way"},
		"not cleaned": {"false", "The machine boots for that"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			config := func(settings ...string) string {
				return hostConfig(s, append(settings, acctest.Target("available"), "automated_clean = "+tt.cleans)...)
			}
			w := acctest.NewWorkspace(t, config())
			w.Must(acctest.Apply()...)
			defer acctest.Destroy(t, s, w)
			id := site.Text(s.Node(s.Name("h"))["uuid"])
			site.ForgetVerbs(s)
			w.Configure(config(recabled("2026-02"), "inspect = true")) // one inspection serves both
			output, _ := w.Plan()
			acctest.Mention(t, output, tt.warning)
			if tt.cleans == "false" {
				acctest.NeverMention(t, output, "Cleaning erases data")
			}
			w.Must(acctest.Apply()...)
			site.WantVerbs(t, s, id, "manage", "inspect", "provide")
			if s.Fake != nil {
				cleaned := false
				for _, state := range s.Fake.Walk(id)[4:] {
					cleaned = cleaned || state == "cleaning"
				}
				if cleaned != (tt.cleans == "true") {
					t.Errorf("the node was in the states %v", s.Fake.Walk(id))
				}
			}
			acctest.NoChanges(t, w)
		})
	}
}

// A deployed, reserved or unreachable machine cannot be inspected: the plan says so, and changes nothing.
func TestAccHost_inspectTriggersAreRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	allocation := "resource \"metal_allocation\" \"a\" {\n  candidate_nodes = [metal_host.h.id]\n  resource_class = " + acctest.Quoted(s.Class()) + "\n}\n"
	host := func(settings ...string) string {
		return hostConfig(s, append(settings, acctest.Target("available"), "resource_class = "+acctest.Quoted(s.Class()))...)
	}
	w := acctest.NewWorkspace(t, host(recabled("1"))+allocation)
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	w.Configure(host(recabled("2")) + allocation)
	acctest.Fails(t, w, []string{"plan"}, "Host cannot be inspected now", "is reserved by", "Destroy its metal_allocation first")
	deployment := acctest.Deployment("metal_allocation.a.node_id", "allocation_id = metal_allocation.a.id", acctest.Image("v1"))
	w.Configure(host(recabled("1")) + allocation + deployment)
	w.Must(acctest.Apply()...)
	w.Configure(host(recabled("2")) + allocation + deployment)
	acctest.Fails(t, w, []string{"plan"}, "Host cannot be inspected now", `is in state "active"`, "Destroy its metal_deployment first")
	w.Configure(host() + allocation + deployment) // a removal is fine
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
}

// Without a BMC, or with target_state = "enroll", Ironic inspects nothing.
func TestAccHost_inspectTriggersNeedAManageableHost(t *testing.T) {
	for name, tt := range map[string]struct{ settings, want string }{
		"enroll": {"driver = \"fake-hardware\"\n  target_state = \"enroll\"", `has target_state = "enroll"`},
		"no BMC": {`driver = "ipmi"`, "has no BMC"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			config := func(value string) string {
				return s.Provider() + acctest.HostBlock(s.Name("h"), tt.settings, recabled(value))
			}
			w := acctest.NewWorkspace(t, config("1"))
			w.Must(acctest.Apply()...)
			defer acctest.Destroy(t, s, w)
			w.Configure(config("2"))
			acctest.Fails(t, w, []string{"plan"}, "Host cannot be inspected now", tt.want)
			w.Configure(config("1"))
		})
	}
}

// An import only records the triggers.
func TestAccHost_importRecordsInspectTriggers(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "h", nil)
	site.ForgetVerbs(s)
	w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_host.h\n  id = "+acctest.Quoted(node)+"\n}\n"+
		acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("available"), `on_destroy = "forget"`, recabled("1")))
	acctest.NeverMention(t, w.Must("apply", "-auto-approve"), "Warning:")
	site.WantVerbs(t, s, node)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// The value of a trigger may be known only during the apply.
func TestAccHost_inspectTriggerIsKnownAfterApply(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(value string) string {
		return hostConfig(s, "inspect_triggers = { recabled = terraform_data.day.output }") + "resource \"terraform_data\" \"day\" {\n  input = " + acctest.Quoted(value) + "\n}\n"
	}
	w := acctest.NewWorkspace(t, config("1"))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	site.ForgetVerbs(s)
	w.Configure(config("2"))
	acctest.Mention(t, w.Must(acctest.Apply()...), "Ironic may inspect host "+s.Name("h")+" again")
	site.WantVerbs(t, s, site.Text(s.Node(s.Name("h"))["uuid"]), "inspect")
	acctest.NoChanges(t, w)
}

// A run is stopped or killed before, during or after the inspection. The next apply finishes it, and inspects once.
func TestFakeHost_nextApplyFinishesTriggeredInspection(t *testing.T) {
	for name, tt := range map[string]struct {
		state string // in which the run ends
		kill  bool
	}{
		"stopped before": {"manageable", false}, "killed before": {"manageable", true},
		"stopped during": {"inspecting", false}, "killed during": {"inspecting", true},
		"stopped after": {"cleaning", false}, "killed after": {"cleaning", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var held atomic.Bool // Ironic does not accept the inspection
			s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
				body, err := io.ReadAll(r.Body)
				if err == nil && held.Load() && strings.HasSuffix(r.URL.Path, "/states/provision") && bytes.Contains(body, []byte(`"inspect"`)) {
					return &fakeironic.Rejection{Status: http.StatusServiceUnavailable}
				}
				return nil
			}})
			config := func(value string) string { return hostConfig(s, acctest.Target("available"), recabled(value)) }
			w := acctest.NewWorkspace(t, config("1"))
			w.Must(acctest.Apply()...)
			host := s.Name("h")
			id := site.Text(s.Node(host)["uuid"])
			site.ForgetVerbs(s)
			w.Configure(config("2"))
			held.Store(tt.state == "manageable")
			release := s.Hold(tt.state)
			running := w.Start("apply", "-auto-approve")
			site.AwaitState(t, s, host, tt.state)
			if tt.kill {
				running.Kill()
			} else {
				running.Interrupt()
			}
			running.Wait()
			held.Store(false)
			output, changes := w.Plan()
			if !changes {
				t.Errorf("the plan after the interruption is empty:\n%s", output)
			}
			release()
			w.Must(acctest.Apply()...)
			if sent := site.Verbs(s, id); strings.Count(strings.Join(sent, " "), "inspect") != 1 {
				t.Errorf("the node was sent %v", sent)
			}
			if node := s.Node(id); node["provision_state"] != "available" || node["inspection_finished_at"] == nil {
				t.Errorf("the node is %v, inspected at %v", node["provision_state"], node["inspection_finished_at"])
			}
			acctest.NoChanges(t, w)
			acctest.Destroy(t, s, w)
		})
	}
}

// A failed inspection is repeated by the next apply.
func TestFakeHost_nextApplyRepeatsFailedInspection(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "inspect" && broken.Load() {
			return "the ramdisk did not answer"
		}
		return ""
	}})
	w := acctest.NewWorkspace(t, hostConfig(s, "inspect = true", recabled("1")))
	w.Must(acctest.Apply()...)
	broken.Store(true)
	w.Configure(hostConfig(s, "inspect = true", recabled("2")))
	acctest.Fails(t, w, acctest.Apply(), "the ramdisk did not answer")
	s.Verb(s.Name("h"), "manage", "manageable") // an operator clears the failure
	broken.Store(false)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Ironic inspects host "+s.Name("h")+" again")
	site.ForgetVerbs(s)
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, site.Text(s.Node(s.Name("h"))["uuid"]), "inspect")
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}
