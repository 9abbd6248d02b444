package discoveryimport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Two processes want the same 50 machines at the same time. Each machine goes to one of them, and the other process gets an error.
// The next apply of each succeeds, and takes nothing from the other, though both have imported all machines.
func TestAccDiscovery_twoRunsShareRack(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	workspaces := map[string]*acctest.Workspace{}
	for _, owner := range []string{s.Name("left"), s.Name("right")} {
		workspaces[owner] = acctest.NewWorkspace(t, rack(s, owner, bySerial("r12-")))
		workspaces[owner].Must("apply", "-auto-approve")
	}
	ids := s.DiscoverAll(machines(s, 50)...)
	for _, w := range workspaces {
		w.Must("plan", "-out=plan")
		if got := discoveries(t, w, "plan")["rack"]; len(got.Hosts) != 50 {
			t.Errorf("planned are %v, want all 50", got.names())
		}
	}
	var both sync.WaitGroup
	for _, w := range workspaces {
		both.Go(func() {
			if output, code := w.Run("apply", "plan"); code != 0 {
				acctest.Mention(t, output, "Could not name ", "The others have got their names. Plan again")
			}
		})
	}
	both.Wait()
	owners := map[string]string{}
	for owner, w := range workspaces {
		acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added")
		acctest.NoChanges(t, w)
		for name, host := range discoveries(t, w)["rack"].Hosts {
			id := site.Text(host["id"])
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
			t.Errorf("node %s belongs to no discovery", id)
		}
	}
}

// markOwner returns the discovery that a node belongs to.
func markOwner(node map[string]any) string {
	extra, _ := node["extra"].(map[string]any)
	mark, _ := extra["terraform_metal_discovery"].(map[string]any)
	return site.Text(mark["owner"])
}

func TestFakeDiscovery_nextApplyRepeatsFailedNaming(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	var broken atomic.Value
	broken.Store("none")
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, site.Text(broken.Load())) {
			return &fakeironic.Rejection{
				Status: http.StatusInternalServerError,
				Body:   `{"error_message": "{\"faultstring\": \"the conductor is on fire\"}"}`,
			}
		}
		return nil
	}
	s := site.StartFake(t, fake)
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
		acctest.Mention(t, output, "Could not name 1 machine", name(n)+" (node "+ids[n]+"): Ironic's answer: the conductor is on fire",
			"The others have got their names.")
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
	acctest.NoChanges(t, w)

	ids = append(ids, fake.Discover(s.Machine(4)), fake.Discover(s.Machine(5)))
	fails(w, 4)
	if got := discoveries(t, w)["rack"]; len(got.Hosts) != 5 || got.id(name(5)) != ids[5] {
		t.Errorf("in state are %v", got.names())
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added", "0 destroyed")
	if got := discoveries(t, w)["rack"]; len(got.Hosts) != 6 || got.id(name(4)) != ids[4] {
		t.Errorf("in state are %v", got.names())
	}
	acctest.NoChanges(t, w)
}

func TestFakeDiscovery_planNeedsIronic(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	var down atomic.Bool
	fake.Reject = func(*http.Request) *fakeironic.Rejection {
		if down.Load() {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}
	s := site.StartFake(t, fake)
	fake.Discover(s.Machine(1))
	fails := func(w *acctest.Workspace, says string) {
		t.Helper()
		output, code := w.Run("plan")
		if code != 1 {
			t.Errorf("the plan has not failed:\n%s", output)
		}
		acctest.Mention(t, output, says)
	}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	down.Store(true)
	fails(w, "Could not list discovered machines")
	down.Store(false)
	w.Must("apply", "-auto-approve")
	down.Store(true)
	fails(w, "Could not list discovered machines")
	down.Store(false)

	unknown := strings.ReplaceAll(rack(s, "rack12", bySerial("")), acctest.Quoted(s.Endpoint), "terraform_data.ironic.output") +
		"resource \"terraform_data\" \"ironic\" {\n  input = " + acctest.Quoted(s.Endpoint) + "\n}\n"
	fails(acctest.NewWorkspace(t, unknown), "Discovery needs Ironic during plan")
}

func TestFakeDiscovery_machineAfterPlanWaits(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	s.Fake.Discover(s.Machine(1))
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("apply", "-auto-approve")
	s.Fake.Discover(s.Machine(2))
	w.Must("plan", "-out=plan")
	late := s.Fake.Discover(s.Machine(3))
	acctest.Mention(t, w.Must("apply", "plan"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if node, _ := s.Fake.Node(late); node.Name != "" {
		t.Errorf("the machine that came late is called %s", node.Name)
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	acctest.NoChanges(t, w)
}

// The first plan has no private state. If a machine appears before its apply, the apply fails and changes nothing.
func TestFakeDiscovery_machineBetweenPlanAndApply(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	ids := []string{s.Fake.Discover(s.Machine(1))}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("plan", "-out=plan")
	ids = append(ids, s.Fake.Discover(s.Machine(2)))
	output, code := w.Run("apply", "plan")
	if code != 1 {
		t.Errorf("this was expected to fail:\n%s", output)
	}
	acctest.Mention(t, output, "Provider produced inconsistent final plan", "metal_discovery_import.rack", ".hosts")
	for _, id := range ids {
		if node, _ := s.Fake.Node(id); node.Name != "" || node.InstanceUUID != "" {
			t.Errorf("the failed apply has changed node %+v", node)
		}
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 2 changed, 0 destroyed")
	acctest.NoChanges(t, w)
}

// Between the first plan and its apply, hosts must not change, but pending machines and their reasons may.
func TestFakeDiscovery_pendingChangesBeforeApply(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	s.Fake.Discover(s.Machine(1))
	gone, busy := s.Fake.Discover(withSerial(s.Machine(2), "None")), s.Fake.Discover(withSerial(s.Machine(3), "None"))
	s.Fake.Set(busy, "reservation", "conductor-1")
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial(""))+"output \"pending\" {\n  value = metal_discovery_import.rack.pending\n}\n")
	planned(t, w)["rack"].wantPending(t, map[string]string{gone: "serial number is \"None\"", busy: "busy: its inspection has not ended"})

	s.Must(http.MethodDelete, "nodes/"+gone, nil)
	s.Fake.Set(busy, "reservation", nil)
	late := s.Fake.Discover(withSerial(s.Machine(4), ""))
	acctest.Mention(t, w.Must("apply", "plan"), "1 added, 1 changed, 0 destroyed")
	got := discoveries(t, w)["rack"]
	if len(got.Hosts) != 1 {
		t.Errorf("in state are %v", got.names())
	}
	got.wantPending(t, map[string]string{busy: "serial number is \"None\"", late: "no serial number in the inventory"})
	acctest.NoChanges(t, w)
}

// The warning identifies the pending machine, so that an operator can find it in the rack, and says what to do.
func TestFakeDiscovery_warningNamesSkippedMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	data := withHostname(withSerial(s.Machine(1), "To be filled by O.E.M."), "web")
	inventory(data)["bmc_address"] = "10.12.0.7"
	id := s.Fake.Discover(data)
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", bySerial("")))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), id+" (MAC address "+s.MAC(1)+", BMC 10.12.0.7, hostname web): serial number is "+
		"\"To be filled by O.E.M.\"; name it in names by its MAC address")

	w.Configure(s.Provider() + discoveryBlock(s, "rack", "rack12", bySerial(""), "names = { "+acctest.Quoted(s.MAC(1))+" = \"slot-01\" }"))
	w.Must("apply", "-auto-approve")
	if got := discoveries(t, w)["rack"]; got.id("slot-01") != id {
		t.Errorf("in state are %v", got.Hosts)
	}
}

// A full rack is not a fault: only a plan that takes machines names those that it leaves.
func TestFakeDiscovery_maxHostsWarnsOnce(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for n := range 3 {
		s.Fake.Discover(s.Machine(n + 1))
	}
	limited := func(n int) string {
		return s.Provider() + discoveryBlock(s, "rack", "rack12", bySerial(""), fmt.Sprintf("max_hosts = %d", n))
	}
	w := acctest.NewWorkspace(t, limited(1))
	const title = "Discovered machines are pending"
	acctest.Mention(t, w.Must("apply", "-auto-approve"), title, "max_hosts reached")
	output, _ := w.Plan()
	acctest.NeverMention(t, output, "Warning:")
	w.Configure(limited(2))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), title, "max_hosts reached")
	acctest.NoChanges(t, w)
}

func TestFakeDiscovery_renameWarnsOfLeavingMachines(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for n := range 3 {
		s.Fake.Discover(s.Machine(n))
	}
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("apply", "-auto-approve")
	w.Configure(rack(s, "rack13", bySerial("")))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Machines leave hosts", "3 machines will leave hosts. Their nodes keep the mark of rack12",
		"a metal_host deletes its node", "1 to add, 0 to change, 4 to destroy")
}

func TestFakeDiscovery_typoIsOneError(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for _, typo := range []string{`name_template = { hardware_details = "serial" }`, bySerial("") + "\n  name_style = \"windows\""} {
		output, code := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", typo)).Run("plan")
		if code != 1 || strings.Count(output, "Error: ") != 1 {
			t.Errorf("%s: exit code %d, want one error:\n%s", typo, code, output)
		}
		acctest.Mention(t, output, "value must be one of")
	}
	for typo, want := range map[string]string{ // Terraform itself drops unknown keys of an object
		bySerial("") + "\n  filter = { " +
			"min_cpu = 16 }": `filter has no key "min_cpu". It has bmc_cidr, driver, manufacturer, min_cpus`,
		bySerial("") + "\n  filter = { min_cpus = \"many\" }":                    `"many" must be a whole number of at least 1`,
		bySerial("") + "\n  filter = { min_memory_mb = 0 }":                      `"0" must be a whole number of at least 1`,
		`name_template = { hardware_details = "serial-number", prefx = "r12-" }`: `name_template has no key "prefx". It has hardware_details, prefix, suffix`,
		`name_template = { prefix = "r12-" }`:                                    "name_template needs hardware_details",
	} {
		config := "resource \"metal_discovery_import\" \"d\" {\n  name = \"d\"\n  " + typo + "\n}\n"
		acctest.Fails(t, acctest.NewWorkspace(t, s.Provider()+config), []string{"validate"}, want)
	}
}

func TestFakeDiscovery_changesOfOthersShow(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	gone, renamed := s.Fake.Discover(s.Machine(1)), s.Fake.Discover(s.Machine(2))
	name := func(n int) string { return s.Name("SN") + fmt.Sprint("-", n) }
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial("")))
	w.Must("apply", "-auto-approve")

	s.Must(http.MethodDelete, "nodes/"+gone, nil)
	s.Patch(renamed, "replace", "/name", "db")
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Record lost in Ironic", "0 added, 1 changed, 1 destroyed")
	acctest.NeverMention(t, output, "is made anew") // the plan of the metal_host shows the other name
	if got := discoveries(t, w)["rack"].names(); !slices.Equal(got, []string{name(2)}) {
		t.Errorf("in state are %v", got)
	}
	if node, _ := s.Fake.Node(renamed); node.Name != name(2) {
		t.Errorf("the renamed node is called %s", node.Name)
	}
	acctest.NoChanges(t, w)

	again := s.Fake.Discover(s.Machine(1))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if got := discoveries(t, w)["rack"]; got.id(name(1)) != again {
		t.Errorf("in state are %v, want the machine that has come back", got.Hosts)
	}
	acctest.NoChanges(t, w)

	// A machine that has lost its mark stays in hosts, and gets the mark again.
	s.Patch(again, "remove", "/extra/terraform_metal_discovery", nil)
	s.Fake.Discover(s.Machine(3))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if owner := markOwner(s.Node(again)); owner != "rack12" {
		t.Errorf("the mark that was lost is that of %q", owner)
	}
	acctest.NoChanges(t, w)
}

func TestFakeDiscovery_ironicInspector(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{MaxMicroversion: "1.82"}
	s := site.StartFake(t, fake)
	id := fake.DiscoverByInspector(s.Machine(1))
	config := rack(s, "rack12", bySerial(""))
	withInspector := strings.Replace(config, "poll_interval", "inspector_endpoint = "+acctest.Quoted(site.StartInspector(t, fake))+
		"\n  poll_interval", 1)
	w := acctest.NewWorkspace(t, withInspector)
	w.Must("apply", "-auto-approve")
	if got := discoveries(t, w)["rack"]; got.id(s.Name("SN")+"-1") != id {
		t.Errorf("in state are %v", got.Hosts)
	}
	acctest.NoChanges(t, w)

	// Without ironic-inspector, only the address of a machine is known.
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
