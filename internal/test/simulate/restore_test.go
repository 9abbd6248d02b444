package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// restoration is a machine whose record is lost and restored.
type restoration struct {
	name   string
	config configuration
	state  string   // of the node before the loss; "": as the apply has left it
	verbs  []string // that the machine is sent
	after  string   // the state of the node afterwards
}

// restorations are those of each kind of machine.
func restorations() []restoration {
	allocated := func() configuration { // with a BMC that tells the power
		config := oneOfEach("v1")
		config["metal_host.a"] = installed("v1")["metal_host.a"]
		return config
	}
	reserved, idle := allocated(), configuration{"metal_host.a": installed("v1")["metal_host.a"]}
	delete(reserved, "metal_deployment.a")
	adopted := []string{"adopt", "manage"}
	return []restoration{
		{"image", installed("v1"), "", adopted, "active"},
		{"image with an allocation", allocated(), "", adopted, "active"},
		{"protected", with(allocated(), "metal_deployment.a", "protected", true), "", adopted, "active"},
		{"live ISO", booted("v1", "n1"), "", adopted, "active"},
		{"adopted", adopting(), "", adopted, "active"},
		{"with a VIF", without(connected("1"), "metal_host.a", "power_state"), "", adopted, "active"},
		{"in service", installed("v1"), "servicing", adopted, "active"},
		{"in rescue mode", installed("v1"), "rescue", adopted, "active"},
		{"reserved", reserved, "", []string{"manage", "provide"}, "available"},
		{"idle", idle, "", []string{"manage", "provide"}, "available"},
		{"manageable", idle, "manageable", []string{"manage"}, "manageable"},
		{"failed to be cleaned", idle, "clean failed", []string{"manage"}, "manageable"},
	}
}

// A machine whose record is restored is neither switched nor written to, and the next plan is empty.
func TestRestore_touchesNoMachine(t *testing.T) {
	t.Parallel()
	for _, r := range restorations() {
		for loss, befall := range losses {
			if loss == remade {
				continue // see TestRestore_refusesTheRecordOfAnotherClient
			}
			t.Run(r.name+"/"+loss, func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) { r.live(t, befall, death{}) })
			})
		}
	}
}

// A restoration goes on after a kill at any moment.
func TestRestore_goesOnAfterAKill(t *testing.T) {
	t.Parallel()
	for _, r := range restorations() {
		if r.state != "" {
			continue
		}
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", r.name, after), func(t *testing.T) {
				t.Parallel()
				everyMoment(t, 1, func(t *testing.T, moment int) bool {
					t.Helper()
					return r.live(t, deleteRecord, death{moment: moment, after: after})
				})
			})
		}
	}
}

// The return of a machine that nothing runs on goes on after a kill at any moment.
func TestRestore_returnGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	for _, r := range restorations() {
		if r.after != "available" {
			continue
		}
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", r.name, after), func(t *testing.T) {
				t.Parallel()
				everyMoment(t, 1, func(t *testing.T, moment int) bool {
					t.Helper()
					s := newSite(1)
					w := s.workspace("w", nil)
					defer s.check(t, fmt.Sprintf("return: %s, moment %d, after %t", r.name, moment, after))
					before := r.begin(t, w, deleteRecord)
					w.apply(t, r.config, death{})
					w.block = nil
					killed := w.apply(t, r.config, death{moment: moment, after: after}).killed
					r.end(t, w, before)
					return killed
				})
			})
		}
	}
}

// live lets the record of a machine get lost, restores it, perhaps with a kill, and checks what is left. It returns false if the provider
// was not killed.
func (r restoration) live(t *testing.T, befall func(*testing.T, *site, string), when death) (killed bool) {
	t.Helper()
	s := newSite(uint64(when.moment))
	w := s.workspace("w", nil)
	defer s.check(t, fmt.Sprintf("restore: %s, moment %d, after %t", r.name, when.moment, when.after))
	before := r.begin(t, w, befall)
	end := w.apply(t, r.config, when)
	if end.failed || w.apply(t, r.config, death{}).failed {
		s.broken("the record is not restored")
	}
	if left := w.replan(t, r.config); !left.empty() && !end.killed { // an allocation gets its name back then
		s.broken("the plan after the restoration is %s", left)
	}
	r.end(t, w, before)
	if sent := s.targets(); !slices.Equal(sent, r.verbs) {
		s.broken("the machine was sent %q, want %q", sent, r.verbs)
	}
	return end.killed
}

// begin lets the record of a machine get lost, and the next apply restore it. It returns the node before the loss.
func (r restoration) begin(t *testing.T, w *workspace, befall func(*testing.T, *site, string)) (before fakeironic.Node) {
	t.Helper()
	s := w.site
	s.secrets = []string{secret}
	if w.apply(t, r.config, death{}).failed {
		s.broken("the first apply has failed")
		return before
	}
	id := w.text("metal_host.a", "id")
	if r.state != "" {
		s.fake.Set(id, "provision_state", r.state)
		for address, c := range w.replan(t, r.config).changes {
			if c.refreshed != nil {
				w.set(address, c.refreshed)
			}
		}
	}
	before = s.fake.Nodes()[0]
	<-time.After(time.Minute)
	befall(t, s, id)
	s.forget()
	w.block = object{"lost_records": "restore"}
	return before
}

// end ends a restoration, and checks what is left.
func (r restoration) end(t *testing.T, w *workspace, before fakeironic.Node) {
	t.Helper()
	if w.block = nil; w.apply(t, r.config, death{}).failed {
		w.site.broken("the apply without lost_records has failed")
	}
	r.check(t, w, before)
}

// check checks what is left of a restoration that has ended.
func (r restoration) check(t *testing.T, w *workspace, before fakeironic.Node) {
	t.Helper()
	s := w.site
	if left := w.replan(t, r.config); left.empty() != (r.after != "manageable") {
		s.broken("the next plan is %s", left)
	}
	n, _ := s.fake.Node(before.UUID)
	if n.ProvisionState != r.after || n.Maintenance || n.Raw["automated_clean"] != before.Raw["automated_clean"] {
		s.broken("the node is %s, in maintenance: %t, automated_clean: %v", n.ProvisionState, n.Maintenance,
			n.Raw["automated_clean"])
	}
	if r.state == "" && (n.InstanceUUID != before.InstanceUUID || n.AllocationUUID != before.AllocationUUID ||
		n.Raw["protected"] != before.Raw["protected"]) {
		s.broken("the node has instance %s, allocation %s, protected: %v", n.InstanceUUID, n.AllocationUUID, n.Raw["protected"])
	}
	now, want := slices.Sorted(maps.Keys(w.state())), slices.Sorted(maps.Keys(r.config))
	if !slices.Equal(now, want) {
		s.broken("in the state of %s are %q, want %q", w.name, now, want)
	}
}

// targets are the verbs that runs have sent since the last call of forget, sorted.
func (s *site) targets() (all []string) {
	for _, v := range s.verbsOf() {
		all = append(all, v.target)
	}
	slices.Sort(all)
	return all
}

// What another client has made under the UUID of a lost record is not taken for the machine.
func TestRestore_refusesTheRecordOfAnotherClient(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(1)
		w := s.workspace("w", nil)
		defer s.check(t, "the record of another client")
		if w.apply(t, installed("v1"), death{}).failed {
			s.broken("the first apply has failed")
		}
		losses[remade](t, s, w.text("metal_host.a", "id"))
		s.forget()
		w.block = object{"lost_records": "restore"}
		if !w.apply(t, installed("v1"), death{}).failed || len(s.verbs) > 0 {
			s.broken("the apply worked, or sent %v", s.verbs)
		}
	})
}

// A backup is older than what a deployment has done since its host was seen last, so that only the deployment knows. It restores the record
// that is there.
func TestRestore_backupThatOnlyTheDeploymentKnowsToBeOlder(t *testing.T) {
	t.Parallel()
	image := func(n fakeironic.Node) any {
		info, _ := n.Raw["instance_info"].(map[string]any)
		return info["image_source"]
	}
	host := configuration{"metal_host.a": installed("v1")["metal_host.a"]}
	for name, tt := range map[string]struct{ before, after configuration }{
		"from before the deployment": {host, installed("v1")},
		"from before a rebuild":      {installed("v1"), installed("v2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(1)
				w := s.workspace("w", nil)
				defer s.check(t, name)
				apply := func(config configuration) {
					if w.apply(t, config, death{}).failed {
						s.broken("an apply has failed")
					}
				}
				apply(tt.before)
				<-time.After(time.Minute)
				apply(tt.before)
				backup := s.fake.Nodes()[0]
				<-time.After(time.Minute)
				apply(tt.after)
				now := s.fake.Nodes()[0]
				for _, field := range []string{"provision_state", "instance_uuid", "instance_info", "extra", "provision_updated_at"} {
					s.fake.Set(backup.UUID, field, backup.Raw[field])
				}
				s.forget()
				w.block = object{"lost_records": "restore"}
				for range 2 {
					apply(tt.after)
				}
				w.block = nil
				if left := w.replan(t, tt.after); !left.empty() {
					s.broken("the next plan is %s", left)
				}
				var sent []string
				for _, v := range s.verbs {
					sent = append(sent, v.target)
				}
				restored := s.fake.Nodes()[0]
				if slices.Contains(sent, "active") || slices.Contains(sent, "rebuild") || slices.Contains(sent, "deleted") || restored.Maintenance ||
					restored.ProvisionState != "active" || restored.InstanceUUID != now.InstanceUUID ||
					image(restored) != image(now) {
					s.broken("the machine was sent %q, and its node is %s: %v", sent, restored.ProvisionState, restored.Raw)
				}
			})
		})
	}
}
