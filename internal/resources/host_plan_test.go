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
