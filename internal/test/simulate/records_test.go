package simulate_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// remade is the loss after which another client has made a record with the same UUID, perhaps for another machine.
const remade = "the node is made anew by another client"

// losses are what befalls Ironic's records.
var losses = map[string]func(t *testing.T, s *site, node string){
	"the database is empty, or the endpoint is another site's": func(_ *testing.T, s *site, _ string) {
		s.fake = &fakeironic.Server{StepTime: s.fake.StepTime}
	},
	"another client deletes the node": deleteRecord,
	remade: func(t *testing.T, s *site, node string) {
		t.Helper()
		deleteRecord(t, s, node)
		time.Sleep(time.Minute)
		body := object{"uuid": node, "name": "a", "driver": "redfish", "resource_class": "baremetal"}
		if status, answer := s.call(t, http.MethodPost, "nodes", body); status != http.StatusCreated {
			t.Fatalf("the node cannot be made: %d %v", status, answer)
		}
	},
	"the database is an older backup": func(_ *testing.T, s *site, node string) {
		for field, value := range map[string]any{
			"provision_state": "available", "instance_uuid": nil, "instance_info": map[string]any{}, "protected": false,
		} {
			s.fake.Set(node, field, value)
		}
		s.fake.Set(node, "provision_updated_at", "1999-12-31T00:00:00+00:00") // after the state, which sets it
	},
}

// deleteRecord deletes a node as another client does.
func deleteRecord(t *testing.T, s *site, node string) {
	t.Helper()
	s.fake.Set(node, "maintenance", true)
	s.fake.Set(node, "protected", false)
	if status, answer := s.call(t, http.MethodDelete, "nodes/"+node, nil); status != http.StatusNoContent {
		t.Fatalf("the node cannot be deleted: %d %v", status, answer)
	}
}

// Whatever state a machine was in, no verb reaches it after Ironic has lost its record, and nothing leaves the state. The plans of an
// apply and of a destruction are refused. Only an idle host that the same site has lost is made anew, which touches its machine no more
// than to verify its BMC.
func TestLostRecords_touchNoMachine(t *testing.T) {
	t.Parallel()
	idle := configuration{"metal_host.a": bmcHost("a")}
	for name, tt := range map[string]struct {
		config configuration
		states []string
	}{
		"image": {installed("v1"), []string{
			"active", "deploying", "wait call-back", "deploy failed", "rescue", "rescuing", "rescue failed", "servicing", "service failed",
			"error",
		}},
		"live ISO": {booted("v1", "n1"), []string{"active", "deploy failed"}},
		"idle":     {idle, []string{"available", "manageable", "clean failed", "cleaning", "enroll"}},
	} {
		for _, state := range tt.states {
			for loss, befall := range losses {
				t.Run(name+"/"+state+"/"+loss, func(t *testing.T) {
					t.Parallel()
					inVirtualTime(t, func(t *testing.T) {
						loseRecord(t, tt.config, state, befall, name == "idle" && loss[0] == 'a', loss[0] == 'a')
					})
				})
			}
		}
	}
}

// loseRecord lets a record get lost of a machine in a state, and checks what the next runs do. sameSite: it is the site that the state
// knows, so that what is gone there may leave the state when it is destroyed.
func loseRecord(t *testing.T, config configuration, state string, befall func(*testing.T, *site, string), madeAnew, sameSite bool) {
	t.Helper()
	s := newSite(1)
	defer s.check(t, "a lost record")
	w := s.workspace("w", nil)
	if w.apply(t, config, death{}).failed {
		s.broken("the first apply has failed")
		return
	}
	node := w.text("metal_host.a", "id")
	if n, _ := s.fake.Node(node); n.ProvisionState != state {
		s.fake.Set(node, "provision_state", state)
		for address, c := range w.replan(t, config).changes {
			if c.refreshed != nil {
				w.set(address, c.refreshed)
			}
		}
	}
	befall(t, s, node)
	before := slices.Sorted(maps.Keys(w.state()))
	s.forget()
	if madeAnew {
		w.mustMakeAnew(t, config, node)
		return
	}
	for _, wanted := range []configuration{config, {}} {
		if ends := sameSite && len(wanted) == 0; w.apply(t, wanted, death{}).failed == ends {
			s.broken("the plan is refused: %t", ends)
		} else if ends {
			before = nil
		}
		if sent := len(s.verbs); sent > 0 {
			s.broken("%d verbs were sent", sent)
		}
		if now := slices.Sorted(maps.Keys(w.state())); !slices.Equal(now, before) {
			s.broken("in state are %q, want %q", now, before)
		}
	}
}

// mustMakeAnew checks that the next apply makes a host anew with its UUID and touches no machine, and that the one after it prepares the
// host.
func (w *workspace) mustMakeAnew(t *testing.T, config configuration, node string) {
	t.Helper()
	if w.apply(t, config, death{}).failed {
		w.site.broken("the record of an idle host is not made anew")
	}
	for _, wanted := range []string{"manageable", "available"} {
		if n, _ := w.site.fake.Node(node); n.UUID != node || n.ProvisionState != wanted {
			w.site.broken("the node is %+v, want it %s", n, wanted)
		}
		if verbs := len(w.site.verbs); wanted == "manageable" && verbs != 1 {
			w.site.broken("%d verbs were sent, want one, which verifies the BMC", verbs)
		}
		if w.apply(t, config, death{}).failed {
			w.site.broken("the host is not prepared")
		}
	}
	if made := w.replan(t, config); !made.empty() {
		w.site.broken("the next plan is not empty: %s", made)
	}
}
