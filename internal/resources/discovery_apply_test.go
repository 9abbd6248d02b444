package resources_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// Two processes want the same 50 machines at the same time. Each machine goes to one of them; who has lost some is told,
// and the next apply of each is a success, which takes nothing from the other, though both have imported all.
func TestAccDiscovery_twoProcessesShareARackWithoutASharedMachine(t *testing.T) {
	t.Parallel()
	s := acctest.StartDiscovery(t)
	workspaces := map[string]*acctest.Workspace{}
	for _, owner := range []string{s.Name("left"), s.Name("right")} {
		workspaces[owner] = acctest.NewWorkspace(t, rack(s, owner, bySerial("r12-")))
		workspaces[owner].Must("apply", "-auto-approve")
	}
	ids := s.DiscoverAll(machines(s, 50)...)
	var running []*acctest.Running
	for _, w := range workspaces {
		w.Must("plan", "-out=plan")
		if got := discoveries(t, w, "plan")["rack"]; len(got.Hosts) != 50 {
			t.Errorf("planned are %v, want all 50", got.names())
		}
	}
	for _, w := range workspaces {
		running = append(running, w.Start("apply", "plan"))
	}
	for _, r := range running {
		if output, code := r.Wait(); code != 0 {
			mention(t, output, "machines could not be named", "The others are named. Plan again")
		}
	}
	owners := map[string]string{}
	for owner, w := range workspaces {
		mention(t, w.Must("apply", "-auto-approve"), "0 added")
		noChanges(t, w)
		for name, host := range discoveries(t, w)["rack"].Hosts {
			id := text(host["id"])
			if owners[id] != "" {
				t.Errorf("node %s belongs to both", id)
			}
			owners[id] = owner
			if node := s.Node(id); node["name"] != name || node["instance_uuid"] != nil || markOwner(node) != owner {
				t.Errorf("%s: node %v has instance %v and the mark of %s", name, node["name"], node["instance_uuid"], markOwner(node))
			}
		}
	}
	for _, id := range ids {
		if owners[id] == "" {
			t.Errorf("node %s belongs to nobody", id)
		}
	}
}

// markOwner is the discovery that a node belongs to.
func markOwner(node map[string]any) string {
	extra, _ := node["extra"].(map[string]any)
	mark, _ := extra["terraform_metal_discovery"].(map[string]any)
	return text(mark["owner"])
}

func TestFakeDiscovery_whatCouldNotBeNamedIsNamedByTheNextApply(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	var broken atomic.Value
	broken.Store("none")
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, text(broken.Load())) {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError, Body: `{"error_message": "{\"faultstring\": \"the conductor is on fire\"}"}`}
		}
		return nil
	}
	s := acctest.StartFake(t, fake)
	var ids []string
	for _, data := range machines(s, 4) {
		ids = append(ids, fake.Discover(data))
	}
	name := func(n int) string { return "r12-" + s.Name("SN") + fmt.Sprint("-", n) }
	fails := func(w *acctest.Workspace, n int) {
		t.Helper()
		broken.Store(ids[n])
		output, code := w.Run("apply", "-auto-approve")
		if code != 1 {
			t.Fatalf("the apply has not failed:\n%s", output)
		}
		mention(t, output, "1 machines could not be named", name(n)+" (node "+ids[n]+"): The conductor is on fire", "The others are named.")
		broken.Store("none")
	}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("r12-")))
	fails(w, 1)
	if got := discoveries(t, w)["rack"].names(); !slices.Equal(got, []string{name(0), name(2), name(3)}) {
		t.Errorf("in state are %v", got)
	}
	w.Must("apply", "-auto-approve")
	if got := discoveries(t, w)["rack"]; len(got.Hosts) != 4 || got.id(name(1)) != ids[1] {
		t.Errorf("in state are %v", got.names())
	}
	noChanges(t, w)

	ids = append(ids, fake.Discover(s.Machine(4)), fake.Discover(s.Machine(5)))
	fails(w, 4)
	if got := discoveries(t, w)["rack"]; len(got.Hosts) != 5 || got.id(name(5)) != ids[5] {
		t.Errorf("in state are %v", got.names())
	}
	mention(t, w.Must("apply", "-auto-approve"), "0 added", "0 destroyed")
	if got := discoveries(t, w)["rack"]; len(got.Hosts) != 6 || got.id(name(4)) != ids[4] {
		t.Errorf("in state are %v", got.names())
	}
	noChanges(t, w)
}

func TestFakeDiscovery_withoutIronicThePlanFails(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	var down atomic.Bool
	fake.Reject = func(*http.Request) *fakeironic.Rejection {
		if down.Load() {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}
	s := acctest.StartFake(t, fake)
	fake.Discover(s.Machine(1))
	fails := func(w *acctest.Workspace, says string) {
		t.Helper()
		output, code := w.Run("plan")
		if code != 1 {
			t.Errorf("the plan has not failed:\n%s", output)
		}
		mention(t, output, says)
	}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	down.Store(true)
	fails(w, "Could not look for discovered machines")
	down.Store(false)
	w.Must("apply", "-auto-approve")
	down.Store(true)
	fails(w, "Could not look for discovered machines")
	down.Store(false)

	unknown := strings.ReplaceAll(rack(s, "rack12", bySerial("")), quoted(s.Endpoint), "terraform_data.ironic.output") +
		"resource \"terraform_data\" \"ironic\" {\n  input = " + quoted(s.Endpoint) + "\n}\n"
	fails(acctest.NewWorkspace(t, unknown), "Discovery needs Ironic during plan")
}

func TestFakeDiscovery_machinesThatComeAfterThePlanWaitForTheNext(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	s.Fake.Discover(s.Machine(1))
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("apply", "-auto-approve")
	s.Fake.Discover(s.Machine(2))
	w.Must("plan", "-out=plan")
	late := s.Fake.Discover(s.Machine(3))
	mention(t, w.Must("apply", "plan"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if node, _ := s.Fake.Node(late); node.Name != "" {
		t.Errorf("the machine that came late is called %s", node.Name)
	}
	mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	noChanges(t, w)
}

// The first plan has no place to keep what it has seen: a machine that comes before its apply makes that fail before
// anything is changed.
func TestFakeDiscovery_aMachineBetweenTheFirstPlanAndItsApplyChangesNothing(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	ids := []string{s.Fake.Discover(s.Machine(1))}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("plan", "-out=plan")
	ids = append(ids, s.Fake.Discover(s.Machine(2)))
	output, code := w.Run("apply", "plan")
	if code != 1 {
		t.Errorf("this was expected to fail:\n%s", output)
	}
	mention(t, output, "Provider produced inconsistent final plan", "metal_discovery_import.rack", "invalid new value for .hosts")
	for _, id := range ids {
		if node, _ := s.Fake.Node(id); node.Name != "" || node.InstanceUUID != "" {
			t.Errorf("the failed apply has changed node %+v", node)
		}
	}
	mention(t, w.Must("apply", "-auto-approve"), "1 added, 2 changed, 0 destroyed")
	noChanges(t, w)
}

// Only which machines there are counts between the first plan and its apply: not who waits, and why.
func TestFakeDiscovery_whatIsPendingMayChangeBeforeTheFirstApply(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	s.Fake.Discover(s.Machine(1))
	gone, busy := s.Fake.Discover(withSerial(s.Machine(2), "None")), s.Fake.Discover(withSerial(s.Machine(3), "None"))
	s.Fake.Set(busy, "reservation", "conductor-1")
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial(""))+"output \"pending\" {\n  value = metal_discovery_import.rack.pending\n}\n")
	planned(t, w)["rack"].wantPending(t, map[string]string{gone: "serial number is \"None\"", busy: "busy: its inspection has not ended"})

	s.Must(http.MethodDelete, "nodes/"+gone, nil)
	s.Fake.Set(busy, "reservation", nil)
	late := s.Fake.Discover(withSerial(s.Machine(4), ""))
	mention(t, w.Must("apply", "plan"), "1 added, 1 changed, 0 destroyed")
	got := discoveries(t, w)["rack"]
	if len(got.Hosts) != 1 {
		t.Errorf("in state are %v", got.names())
	}
	got.wantPending(t, map[string]string{busy: "serial number is \"None\"", late: "no serial number in the inventory"})
	noChanges(t, w)
}

// Whoever stands at the rack has to find the machine, and to know what to do.
func TestFakeDiscovery_theWarningOfAMachineThatIsNotTakenTellsWhichAndWhatToDo(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	data := withHostname(withSerial(s.Machine(1), "To be filled by O.E.M."), "web")
	inventory(data)["bmc_address"] = "10.12.0.7"
	id := s.Fake.Discover(data)
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", bySerial("")))
	mention(t, w.Must("apply", "-auto-approve"), id+" (MAC address "+s.MAC(1)+", BMC 10.12.0.7, hostname web): serial number is \"To be filled by O.E.M.\"; name it in names by its MAC address")

	w.Configure(s.Provider() + discoveryBlock(s, "rack", "rack12", bySerial(""), "names = { "+quoted(s.MAC(1))+" = \"slot-01\" }"))
	w.Must("apply", "-auto-approve")
	if got := discoveries(t, w)["rack"]; got.id("slot-01") != id {
		t.Errorf("in state are %v", got.Hosts)
	}
}

func TestFakeDiscovery_anotherNameWarnsOfTheMachinesThatLeave(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	for n := range 3 {
		s.Fake.Discover(s.Machine(n))
	}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("apply", "-auto-approve")
	w.Configure(rack(s, "rack13", bySerial("")))
	output, _ := w.Plan()
	mention(t, output, "3 machines leave hosts", "They stay marked as those of rack12", "a metal_host deletes its node", "1 to add, 0 to change, 4 to destroy")
}

func TestFakeDiscovery_aTypoIsOneError(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	for _, typo := range []string{`name_template = { hardware_details = "serial" }`, bySerial("") + "\n  style = \"windows\""} {
		output, code := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", typo)).Run("plan")
		if code != 1 || strings.Count(output, "Error: ") != 1 {
			t.Errorf("%s: exit code %d, want one error:\n%s", typo, code, output)
		}
		mention(t, output, "value must be one of")
	}
}

func TestFakeDiscovery_whatOthersDoToNodesShows(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	gone, renamed := s.Fake.Discover(s.Machine(1)), s.Fake.Discover(s.Machine(2))
	name := func(n int) string { return s.Name("SN") + fmt.Sprint("-", n) }
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("apply", "-auto-approve")

	s.Must(http.MethodDelete, "nodes/"+gone, nil)
	s.Patch(renamed, "replace", "/name", "db")
	output := w.Must("apply", "-auto-approve")
	mention(t, output, "A discovered host was renamed", name(2)+" is called \"db\" in Ironic now", "0 added, 1 changed, 0 destroyed")
	if got := discoveries(t, w)["rack"].names(); !slices.Equal(got, []string{name(2)}) {
		t.Errorf("in state are %v", got)
	}
	if node, _ := s.Fake.Node(renamed); node.Name != name(2) {
		t.Errorf("the renamed node is called %s", node.Name)
	}
	noChanges(t, w)

	again := s.Fake.Discover(s.Machine(1))
	mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if got := discoveries(t, w)["rack"]; got.id(name(1)) != again {
		t.Errorf("in state are %v, want the machine that has come back", got.Hosts)
	}
	noChanges(t, w)

	// Whose mark is lost stays, and the mark comes back.
	s.Patch(again, "remove", "/extra/terraform_metal_discovery", nil)
	s.Fake.Discover(s.Machine(3))
	mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if owner := markOwner(s.Node(again)); owner != "rack12" {
		t.Errorf("the mark that was lost is that of %q", owner)
	}
	noChanges(t, w)
}

func TestFakeDiscovery_ironicInspectorsMachinesHaveNames(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{MaxMicroversion: "1.82"}
	s := acctest.StartFake(t, fake)
	id := fake.DiscoverByInspector(s.Machine(1))
	config := rack(s, "rack12", bySerial(""))
	withInspector := strings.Replace(config, "poll_interval", "inspector_url = "+quoted(startInspector(t, fake))+"\n  poll_interval", 1)
	w := acctest.NewWorkspace(t, withInspector)
	w.Must("apply", "-auto-approve")
	if got := discoveries(t, w)["rack"]; got.id(s.Name("SN")+"-1") != id {
		t.Errorf("in state are %v", got.Hosts)
	}
	noChanges(t, w)

	// Without ironic-inspector nothing but its address is known of a machine.
	second := fake.DiscoverByInspector(s.Machine(2))
	alone := acctest.NewWorkspace(t, s.Provider()+`
		resource "metal_discovery_import" "serial" {
		  name          = "serial"
		  name_template = { hardware_details = "serial-number" }
		}
		resource "metal_discovery_import" "mac" {
		  name          = "mac"
		  name_template = { hardware_details = "boot-mac" }
		}`)
	found := planned(t, alone)
	found["serial"].wantPending(t, map[string]string{second: "no inventory"})
	if got := found["mac"].names(); !slices.Equal(got, []string{strings.ReplaceAll(s.MAC(2), ":", "-")}) {
		t.Errorf("named by address are %v", got)
	}
}
