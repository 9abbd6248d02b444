package discoveryimport_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantOnly fails a test unless a node has been in these states only, one after the other.
func wantOnly(t *testing.T, fake *fakeironic.Server, id string, states ...string) {
	t.Helper()
	got := fake.Walk(id)
	for i, state := range got {
		if i >= len(states) || states[i] != state {
			t.Errorf("node %s was %v, want %v", id, got, states)
			return
		}
	}
	if len(got) != len(states) {
		t.Errorf("node %s was %v, want %v", id, got, states)
	}
}

// A metal_host that is created rather than imported takes over the discovered node with its name or its port.
func TestFakeDiscovery_hostTakesOver(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	byName, byAddress := s.Fake.Discover(s.Machine(1)), s.Fake.Discover(s.Machine(2))
	config := func(bmcOfRack, bmcOfOther string) string {
		return s.Provider() + discoveryBlock(s, "rack", "rack12", bySerial(""), "exclude = ["+acctest.Quoted(s.MAC(2))+"]") +
			rackHosts(bmcOfRack) +
			acctest.HostBlock("db", "ports = { "+acctest.Quoted(s.MAC(2))+" = {} }",
				"depends_on = [metal_discovery_import.rack]", bmcOfOther)
	}
	w := acctest.NewWorkspace(t, config(`driver = "ipmi"`, `driver = "ipmi"`))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "3 added, 0 changed, 0 destroyed")
	if nodes := s.Fake.Nodes(); len(nodes) != 2 {
		t.Fatalf("there are %d nodes, want the 2 that were discovered", len(nodes))
	}
	name := s.Name("SN") + "-1"
	hosts := map[string]string{`metal_host.rack["` + name + `"]`: byName, acctest.HostAddress: byAddress}
	for address, id := range hosts {
		host := acctest.InState(t, w, address)
		if host.Values["id"] != id || host.Values["power_managed"] != false || host.Values["provision_state"] != "enroll" {
			t.Errorf("%s is %v, want node %s, of which Ironic knows no BMC", address, host.Values, id)
		}
		wantOnly(t, s.Fake, id, "enroll")
	}
	if node, _ := s.Fake.Node(byAddress); node.Name != "db" || markOwner(node.Raw) != "metal_host" || node.InstanceUUID != "" {
		t.Errorf("the node with the port is %+v", node)
	}
	acctest.NoChanges(t, w)

	password := "username = \"root\"\n    password_wo = \"calvin\"\n    password_wo_version = 1"
	w.Configure(config("bmc = {\n    address = \"ipmi://${each.value.bmc_address}\"\n    "+password+"\n  }",
		bmc.Block("ipmi://192.0.2.7", password)))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 2 changed, 0 destroyed")
	for address, id := range hosts {
		host := acctest.InState(t, w, address)
		if host.Values["id"] != id || host.Values["power_managed"] != true || host.Values["provision_state"] != "manageable" {
			t.Errorf("%s is %v, want node %s, managed", address, host.Values, id)
		}
		wantOnly(t, s.Fake, id, "enroll", "verifying", "manageable")
	}
	info, _ := s.Node(byName)["driver_info"].(map[string]any)
	if info["ipmi_address"] != "198.18.0.1" {
		t.Errorf("driver_info is %v", info)
	}
	acctest.NoChanges(t, w)
}

// portOfMachine is the HCL of the port that the first machine boots from.
func portOfMachine(s *site.Site) string {
	return "ports = { " + acctest.Quoted(s.MAC(1)) + " = {} }"
}

// The plan warns of a take-over if Ironic has the discovered node already, and so does the apply, which plans again.
func TestFakeDiscovery_takeOverWarns(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DiscoveryDriver: "ipmi", DiscoveryKeepsPower: true})
	const title = "Discovered node is taken over"
	b := bmc.Block("ipmi://198.18.0.1", "username = \"root\"\n    password = \"calvin\"")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock("db", b, portOfMachine(s), acctest.Target("available"), "inspect = true"))
	output, _ := w.Plan()
	acctest.NeverMention(t, strings.ReplaceAll(output, "Warning: New host is cleaned", ""), "Warning:")

	id := s.Fake.Discover(s.Machine(1))
	output, _ = w.Plan()
	acctest.Mention(t, output, title, "Ironic has node "+id+" already", "Host db takes it over", "Ironic inspects and cleans it",
		"loses the data")
	acctest.NeverMention(t, output, "Cleaning erases data", "Inspection boots")
	w.Must("plan", "-out", "plan.bin")
	output = w.Must("apply", "plan.bin")
	if n := strings.Count(output, title); n != 1 {
		t.Errorf("the apply warns %d times, want once:\n%s", n, output)
	}
	output, _ = w.Plan()
	acctest.NeverMention(t, output, "Warning:")
}

// Where only the apply finds the node, the apply warns.
func TestFakeDiscovery_takeOverSincePlanWarns(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DiscoveryDriver: "ipmi", DiscoveryKeepsPower: true})
	b := bmc.Block("ipmi://198.18.0.1", "username = \"root\"\n    password = \"calvin\"")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock("db", b, portOfMachine(s)))
	w.Must("plan", "-out", "plan.bin")
	s.Fake.Discover(s.Machine(1))
	output := w.Must("apply", "plan.bin")
	acctest.Mention(t, output, "Discovered node is taken over", "Host db takes it over")
}

// One apply claims and imports the machines, and sends their credentials.
func TestFakeDiscovery_rackInOneApply(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DiscoveryDriver: "ipmi", DiscoveryKeepsPower: true})
	id := s.Fake.Discover(s.Machine(1))
	b := "target_state = \"manageable\"\n  bmc = {\n    address = \"ipmi://${each.value.bmc_address}\"\n    username = \"root\"\n " +
		"   password = \"calvin\"\n  }"
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", bySerial(""))+rackImport+rackHosts(b))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 1 added, 1 changed, 0 destroyed")
	wantOnly(t, s.Fake, id, "enroll", "verifying", "manageable")
	acctest.NoChanges(t, w)
}

// The plan of a rack shows what the configuration says, and once what was discovered.
func TestFakeDiscovery_planOfRackIsShort(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DiscoveryDriver: "redfish", DiscoveryKeepsPower: true})
	const machines = 6
	for n := range machines {
		s.Fake.Discover(s.Machine(n + 1))
	}
	host := "target_state = \"available\"\n  resource_class = \"r12\"\n  bmc = {\n    address = " +
		"\"redfish://${each.value.bmc_address}\"\n    username = \"root\"\n    password_wo = \"calvin\"\n    password_wo_version = 1\n  }"
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", bySerial(""))+rackImport+rackHosts(host))
	w.RealCLI()
	output, _ := w.Plan()
	acctest.NeverMention(t, output, "ports", "properties")
	_, block, _ := strings.Cut(output, "# metal_host.rack[")
	block, _, _ = strings.Cut(block, "# metal_host.rack[")
	if lines := strings.Count(block, "\n"); lines > 26 {
		t.Errorf("%d lines a host:\n%s", lines, block)
	}
	if lines := strings.Count(output, "\n"); lines > 307 {
		t.Errorf("%d lines for %d machines:\n%s", lines, machines, output)
	}
}

// A metal_host does not take over a node that another configuration manages or that was enrolled by hand, neither by name nor by
// port, and discovery does not list such a node.
func TestFakeDiscovery_nodeOfOtherUser(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DiscoveryDriver: "ipmi", DiscoveryKeepsPower: true})
	theirs := s.Fake.Discover(s.Machine(1))
	byHand := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{
		"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.8", "ipmi_username": "root", "ipmi_password": "calvin"},
	})["uuid"])
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": byHand, "address": s.MAC(2)})
	rack := func(target string) string {
		b := target + "\n  bmc = {\n    address = \"ipmi://${each.value.bmc_address}\"\n    username = \"root\"\n    password = " +
			"\"calvin\"\n  }"
		return s.Provider() + discoveryBlock(s, "rack", "rack12", bySerial("")) + rackImport + rackHosts(b)
	}
	w := acctest.NewWorkspace(t, rack(acctest.Target("enroll")))
	name := s.Name("SN") + "-1"
	for _, state := range []string{"enroll", "available"} {
		w.Configure(rack(acctest.Target(state)))
		w.Must(acctest.Apply()...)
		if got := discoveries(t, w)["rack"].names(); len(got) != 1 || got[0] != name {
			t.Errorf("discovered are %v, want %s alone", got, name)
		}
		before := []any{s.Node(theirs)["updated_at"], s.Node(byHand)["updated_at"]}
		for block, refusal := range map[string]string{
			acctest.HostBlock(name, `driver = "fake-hardware"`): "Names are unique " +
				"in Ironic. Import the existing node",
			acctest.HostBlock("mine", `driver = "fake-hardware"`, "ports = { "+acctest.Quoted(s.MAC(1))+" = {} }"): "A MAC address " +
				"belongs to one node only. Import the node that has it",
			acctest.HostBlock("mine", `driver = "fake-hardware"`, "ports = { "+acctest.Quoted(s.MAC(2))+" = {} }"): "A MAC address " +
				"belongs to one node only. Import the node that has it",
		} {
			other := acctest.NewWorkspace(t, s.Provider()+block)
			acctest.Fails(t, other, acctest.Apply(), refusal)
			if acctest.InState(t, other, acctest.HostAddress) != nil {
				t.Errorf("%s: there is something in state", block)
			}
		}
		if after := []any{s.Node(theirs)["updated_at"], s.Node(byHand)["updated_at"]}; !slices.Equal(before, after) ||
			len(s.Fake.Nodes()) != 2 {
			t.Errorf("the nodes were changed, or others made: %v", s.Fake.Nodes())
		}
	}
	acctest.NoChanges(t, w)
}

// Discovery does not take over a metal_host without a name that is only enrolled.
func TestFakeDiscovery_hostWithoutName(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	host := "resource \"metal_host\" \"h\" {\n  driver = \"fake-hardware\"\n  target_state = \"enroll\"\n  ports = { " +
		acctest.Quoted(s.MAC(1)) + " = {} }\n}\n"
	w := acctest.NewWorkspace(t, s.Provider()+host)
	w.Must(acctest.Apply()...)
	w.Configure(s.Provider() + host + "resource \"metal_discovery_import\" \"d\" {\n  name = \"d\"\n  name_template = { hardware_details " +
		"= \"boot-mac\" }\n}\n")
	w.Must(acctest.Apply()...)
	if d := discoveries(t, w)["d"]; len(d.Hosts)+len(d.Pending) > 0 {
		t.Errorf("discovered is %+v", d)
	}
	acctest.NoChanges(t, w)
}

// Replacing a metal_host deletes and enrolls its node. The machine then has a new node, and stays in hosts.
func TestFakeDiscovery_replacedHostStays(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	old := s.Fake.Discover(s.Machine(1))
	s.Fake.Discover(s.Machine(2))
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", bySerial(""))+rackImport+
		rackHosts(`driver = "fake-hardware"`))
	w.Must("apply", "-auto-approve")
	before := discoveries(t, w)["rack"]
	name := s.Name("SN") + "-1"
	address := `metal_host.rack["` + name + `"]`
	acctest.Mention(t, w.Must("apply", "-auto-approve", "-replace="+address), "1 added, 0 changed, 1 destroyed")
	acctest.NoChanges(t, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 0 destroyed")

	id := site.Text(acctest.InState(t, w, address).Values["id"])
	if node, exists := s.Fake.Node(id); id == old || !exists || node.Name != name {
		t.Errorf("the host is node %s, %+v; it was %s", id, node, old)
	}
	got := discoveries(t, w)["rack"]
	for fact, value := range before.Hosts[name] {
		if fact != "id" && !reflect.DeepEqual(got.Hosts[name][fact], value) {
			t.Errorf("%s of the machine is %v, want %v", fact, got.Hosts[name][fact], value)
		}
	}
	if got.id(name) != id || len(got.Hosts) != 2 {
		t.Errorf("in state are %v, want %s as node %s", got.Hosts, name, id)
	}

	// The new node gets the mark with the next update, as a node does that has lost its mark.
	s.Fake.Discover(s.Machine(3))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
	if owner := markOwner(s.Node(id)); owner != "rack12" {
		t.Errorf("the mark of the new node is that of %q", owner)
	}
	acctest.NoChanges(t, w)
}

// A metal_host that was imported and never changed does not delete a discovered node, because another discovery may own it. If the
// node cannot be read, nothing is deleted either.
func TestFakeDiscovery_importedNodeIsNotDeleted(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	var failed atomic.Int32
	var id string
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodGet && r.URL.Path == "/v1/nodes/"+id && fails.Load() {
			failed.Add(1)
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}})
	id = s.Fake.Discover(s.Machine(1))
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h")))
	w.Must("import", acctest.HostAddress, id)
	fails.Store(true)
	output, code := w.Run("destroy", "-auto-approve", "-refresh=false")
	fails.Store(false)
	if code == 0 || failed.Load() == 0 || acctest.InState(t, w, acctest.HostAddress) == nil {
		t.Errorf("the node could not be read, and the run ended with %d:\n%s", code, output)
	}
	acctest.Mention(t, w.Must("destroy", "-auto-approve"), "Discovered node is not deleted")
	if _, exists := s.Fake.Node(id); !exists {
		t.Error("the node was deleted")
	}
}

// Hosts with count over the names of a discovery shift when a machine whose name sorts before is discovered. A deployed one does not get
// its name, which the same run gives to the new node, nor the BMC that the new machine reports.
func TestFakeDiscovery_listOfNamesDoesNotShiftDeployedMachines(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DiscoveryDriver: "redfish", DiscoveryKeepsPower: true})
	s.Fake.Discover(s.Machine(2))
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", "rack12", bySerial(""))+`
		locals { names = sort(keys(metal_discovery_import.rack.hosts)) }
		resource "metal_host" "h" {
		  count          = length(local.names)
		  name           = local.names[count.index]
		  resource_class = "`+s.Class()+`"
		  target_state   = "available"
		  bmc = {
		    address = "redfish://${metal_discovery_import.rack.hosts[local.names[count.index]].bmc_address}/redfish/v1/Systems/1"
		  }
		}
		resource "metal_deployment" "d" {
		  count   = length(local.names)
		  node_id = metal_host.h[count.index].id
		  `+acctest.Image("a")+`
		}`)
	w.Must(acctest.Apply()...)
	s.Fake.Discover(s.Machine(3))
	acctest.Mention(t, w.Must("plan"), "2 to add, 1 to change, 0 to destroy")
	s.Fake.Discover(s.Machine(1))
	acctest.Fails(t, w, []string{"plan"}, "Node "+s.Name("SN")+"-2 is deployed; this change would make it control the machine of node",
		"is deployed; this plan would create another node", "use for_each, or moved blocks")
}
