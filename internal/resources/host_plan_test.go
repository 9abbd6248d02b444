package resources_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// A saved plan that shows no cleaning and no switch brings neither, whatever has happened to the node since.
func TestAccHost_savedPlanDoesNothingToTheMachineThatItDidNotShow(t *testing.T) {
	for name, tt := range map[string]struct {
		changes func(s *acctest.Site, node string) // since the plan
		refused bool
		then    map[string]any
	}{
		"cleaning": {
			func(s *acctest.Site, node string) { s.Verb(node, "manage", "manageable") }, true,
			map[string]any{"provision_state": "manageable", "description": "one"},
		},
		"power": {
			func(s *acctest.Site, node string) {
				s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
				s.Await(node, "power_state", "power on")
			}, false,
			map[string]any{"power_state": "power on", "description": "two"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			node := s.Name("h")
			config := func(description string) string {
				return hostConfig(s, target("available"), `power_state = "off"`, "description = "+quoted(description))
			}
			w := acctest.NewWorkspace(t, config("one"))
			w.Must(apply()...)
			defer destroy(t, s, w)
			w.Configure(config("two"))
			w.Must("plan", "-out=plan")
			tt.changes(s, node)
			forgetVerbs(s)
			if tt.refused {
				fails(t, w, []string{"apply", "plan"}, "Host "+node+" has changed since the plan: it is in state manageable, was available",
					"Nothing was done to it; plan again")
			} else {
				w.Must("apply", "plan")
			}
			wantVerbs(t, s, text(s.Node(node)["uuid"]))
			if found := lacks("", s.Node(node), tt.then); len(found) > 0 {
				t.Errorf("the node in Ironic: %v", found)
			}
			w.Must(apply()...) // which shows it
			want := map[string]any{"provision_state": "available", "power_state": "power off", "description": "two"}
			if found := lacks("", s.Node(node), want); len(found) > 0 {
				t.Errorf("the node in Ironic after another plan: %v", found)
			}
			noChanges(t, w)
		})
	}
}

// A deployment that ends in the run that changes its host leaves the host's way for the next plan.
func TestAccHost_deploymentThatEndsInTheSameApplyIsNoObstacle(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	deployed := deployment("metal_host.h.id", image("v1"))
	w := acctest.NewWorkspace(t, hostConfig(s, target("available"))+deployed)
	w.Must(apply()...)
	defer destroy(t, s, w)
	w.Configure(hostConfig(s, target("manageable"), `description = "out of service"`))
	w.Must(apply()...)
	w.Must(apply()...)
	if found := lacks("", s.Node(s.Name("h")), map[string]any{"provision_state": "manageable", "description": "out of service"}); len(found) > 0 {
		t.Errorf("the node in Ironic: %v", found)
	}
	noChanges(t, w)
}

// What is to be done to a machine may be known only during the apply. The plan then says what it may come to, and the apply works.
func TestAccHost_planWarnsOfWhatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	later := func(s *acctest.Site, attribute, value string) string {
		return hostConfig(s, attribute+" = terraform_data.stage.output") + "resource \"terraform_data\" \"stage\" {\n  input = " + value + "\n}\n"
	}
	for name, tc := range map[string]struct {
		attribute, value string
		warning          []string
		want             map[string]any
	}{
		"target_state": {
			"target_state", `"available"`,
			[]string{"Cleaning erases data", "is not known yet: if it becomes available, Ironic cleans it on the way"},
			map[string]any{"provision_state": "available"},
		},
		"inspect": {"inspect", `true`, []string{"Inspection boots the machine", "may be inspected: it boots for that"}, map[string]any{"provision_state": "manageable"}},
		"power_state": {
			"power_state", `"on"`, []string{"Power is switched", "may be switched on or off"}, map[string]any{"power_state": "power on"},
		},
	} {
		for when, before := range map[string]bool{"of a new host": false, "of one that there is": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				s := acctest.Start(t, nil)
				w := acctest.NewWorkspace(t, hostConfig(s))
				if before {
					w.Must(apply()...)
				}
				w.Configure(later(s, tc.attribute, tc.value))
				mention(t, w.Must(apply()...), tc.warning...)
				defer destroy(t, s, w)
				node := s.Node(s.Name("h"))
				if found := lacks("", node, tc.want); len(found) > 0 {
					t.Errorf("the node in Ironic: %v", found)
				}
				if tc.attribute == "inspect" && node["inspection_finished_at"] == nil {
					t.Error("the node was not inspected")
				}
				noChanges(t, w)
			})
		}
	}
}

// What was warned of does not happen if it turns out that nobody wants it.
func TestAccHost_targetStateThatBecomesKnownLaterTouchesNothingInVain(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	later := func(target string) string {
		return hostConfig(s, "target_state = terraform_data.stage.output") + "resource \"terraform_data\" \"stage\" {\n  input = " + quoted(target) + "\n}\n"
	}
	w := acctest.NewWorkspace(t, hostConfig(s, target("manageable")))
	w.Must(apply()...)
	defer destroy(t, s, w)
	forgetVerbs(s)
	w.Configure(later("manageable"))
	w.Must(apply()...)
	wantVerbs(t, s, text(inState(t, w, hostAddress).Values["id"]))
	noChanges(t, w)
}
