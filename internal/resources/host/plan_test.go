package host_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Applying a saved plan that announced no cleaning and no power switch does neither, even if the node has changed since.
func TestAccHost_savedPlanDoesOnlyWhatItAnnounced(t *testing.T) {
	for name, tt := range map[string]struct {
		changes func(s *site.Site, node string) // since the plan
		refused bool
		then    map[string]any
	}{
		"cleaning": {
			func(s *site.Site, node string) { s.Verb(node, "manage", "manageable") }, true,
			map[string]any{"provision_state": "manageable", "description": "one"},
		},
		"power": {
			func(s *site.Site, node string) {
				s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
				s.Await(node, "power_state", "power on")
			}, false,
			map[string]any{"power_state": "power on", "description": "two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			node := s.Name("h")
			config := func(description string) string {
				return hostConfig(s, acctest.Target("available"), `power_state = "off"`, "description = "+acctest.Quoted(description))
			}
			w := acctest.NewWorkspace(t, config("one"))
			w.Must(acctest.Apply()...)
			defer acctest.Destroy(t, s, w)
			w.Configure(config("two"))
			w.Must("plan", "-out=plan")
			tt.changes(s, node)
			site.ForgetVerbs(s)
			if tt.refused {
				acctest.Fails(t, w, []string{"apply", "plan"}, "Host "+node+" has changed since the plan, from state available to "+
					"manageable", "Plan again")
			} else {
				w.Must("apply", "plan")
			}
			site.WantVerbs(t, s, site.Text(s.Node(node)["uuid"]))
			if found := lacks("", s.Node(node), tt.then); len(found) > 0 {
				t.Errorf("the node in Ironic: %v", found)
			}
			w.Must(acctest.Apply()...) // a new plan announces the change
			want := map[string]any{"provision_state": "available", "power_state": "power off", "description": "two"}
			if found := lacks("", s.Node(node), want); len(found) > 0 {
				t.Errorf("the node in Ironic after another plan: %v", found)
			}
			acctest.NoChanges(t, w)
		})
	}
}

// One apply destroys a deployment and changes its host. The walk of the host is left to the next plan.
func TestAccHost_changesWhileItsDeploymentIsDestroyed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	deployed := acctest.Deployment("metal_host.h.id", acctest.Image("v1"))
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("available"))+deployed)
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	w.Configure(hostConfig(s, acctest.Target("manageable"), `description = "out of service"`))
	w.Must(acctest.Apply()...)
	w.Must(acctest.Apply()...)
	if found := lacks("", s.Node(s.Name("h")), map[string]any{
		"provision_state": "manageable",
		"description":     "out of service",
	}); len(found) > 0 {
		t.Errorf("the node in Ironic: %v", found)
	}
	acctest.NoChanges(t, w)
}

// The values that decide about the steps may be known only during the apply. The plan then warns of all possible steps.
func TestAccHost_planWarnsOfUnknownValues(t *testing.T) {
	t.Parallel()
	later := func(s *site.Site, attribute, value string) string {
		return hostConfig(s, attribute+" = terraform_data.stage.output") + "resource \"terraform_data\" \"stage\" {\n  input = " +
			value + "\n}\n"
	}
	for name, tc := range map[string]struct {
		attribute, value string
		warning          []string
		want             map[string]any
	}{
		"target_state": {
			"target_state", `"available"`,
			[]string{"Cleaning erases data", "is not known yet. It may become available. Ironic cleans it on the way"},
			map[string]any{"provision_state": "available"},
		},
		"inspect": {
			"inspect", `true`,
			[]string{"Inspection boots the machine", "Ironic may inspect host"},
			map[string]any{"provision_state": "manageable"},
		},
		"power_state": {
			"power_state", `"on"`, []string{"Power is switched", "may be switched on or off"}, map[string]any{"power_state": "power on"},
		},
	} {
		for when, before := range map[string]bool{"of a new host": false, "of an existing host": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				s := site.Start(t, nil)
				w := acctest.NewWorkspace(t, hostConfig(s))
				if before {
					w.Must(acctest.Apply()...)
				}
				w.Configure(later(s, tc.attribute, tc.value))
				output := w.Must(acctest.Apply()...)
				if before {
					acctest.Mention(t, output, tc.warning...)
				} else {
					acctest.NeverMention(t, strings.ReplaceAll(output, "Warning: New host is cleaned", ""), "Warning:")
				}
				defer acctest.Destroy(t, s, w)
				node := s.Node(s.Name("h"))
				if found := lacks("", node, tc.want); len(found) > 0 {
					t.Errorf("the node in Ironic: %v", found)
				}
				if tc.attribute == "inspect" && node["inspection_finished_at"] == nil {
					t.Error("the node was not inspected")
				}
				acctest.NoChanges(t, w)
			})
		}
	}
}

// A step that the plan warned of does not happen if the value that becomes known does not require it.
func TestAccHost_unknownTargetStateTurnsOutUnchanged(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	later := func(target string) string {
		return hostConfig(s, "target_state = terraform_data.stage.output") + "resource \"terraform_data\" \"stage\" {\n  input = " +
			acctest.Quoted(target) + "\n}\n"
	}
	w := acctest.NewWorkspace(t, hostConfig(s, acctest.Target("manageable")))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	site.ForgetVerbs(s)
	w.Configure(later("manageable"))
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, site.Text(acctest.InState(t, w, acctest.HostAddress).Values["id"]))
	acctest.NoChanges(t, w)
}

// One cause, one message.
func TestAccHost_withoutBMCAndDriverIsOneError(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), acctest.Target("available"), `power_state = "off"`))
	output := acctest.Fails(t, w, []string{"plan"}, "No BMC and no driver")
	acctest.NeverMention(t, output, "Host without BMC", "Warning:")
}
