package discoveryimport_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const rackAddress = "metal_discovery_import.rack"

// bySerial is a name template with a prefix.
func bySerial(prefix string) string {
	return fmt.Sprintf(`name_template = { prefix = %q, hardware_details = "serial-number" }`, prefix)
}

// discoveryBlock is the HCL of a discovery of the machines of a test, with further settings.
func discoveryBlock(s *site.Site, label, name string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_discovery_import\" %q {\n  name = %q\n  filter = { product = %q }\n  %s\n}\n",
		label, name, "^"+s.Product()+"$", strings.Join(settings, "\n  "))
}

// rack is the discovery "rack" with the hosts that it finds.
func rack(s *site.Site, name string, settings ...string) string {
	return s.Provider() + discoveryBlock(s, "rack", name, settings...) + rackImport + rackHosts("")
}

const rackImport = `
	import {
	  for_each = metal_discovery_import.rack.hosts
	  to       = metal_host.rack[each.key]
	  id       = each.value.id
	}
`

// rackHosts are the hosts of the discovery "rack", with further settings.
func rackHosts(settings string) string {
	return "resource \"metal_host\" \"rack\" {\n  for_each = metal_discovery_import.rack.hosts\n  name = each.key\n  " + settings + "\n}\n"
}

// discoveries are the metal_discovery_import of a workspace's state, or of a plan file, by label.
func discoveries(t *testing.T, w *acctest.Workspace, plan ...string) map[string]discovered {
	t.Helper()
	type module struct {
		Root struct {
			Resources []struct {
				Type, Name string
				Values     discovered
			}
		} `json:"root_module"`
	}
	var shown struct {
		Values  module
		Planned module `json:"planned_values"`
	}
	output := w.Must(append([]string{"show", "-json"}, plan...)...)
	if err := json.Unmarshal([]byte(output), &shown); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	found := map[string]discovered{}
	for _, r := range append(shown.Values.Root.Resources, shown.Planned.Root.Resources...) {
		if r.Type == "metal_discovery_import" {
			found[r.Name] = r.Values
		}
	}
	return found
}

// planned makes a plan file, "plan", and returns the metal_discovery_import in it by label. In their first plan, only a warning
// says which machines are pending.
func planned(t *testing.T, w *acctest.Workspace) map[string]discovered {
	t.Helper()
	output := w.Must("plan", "-json", "-out=plan")
	found := discoveries(t, w, "plan")
	for _, line := range strings.Split(output, "\n") {
		var message struct {
			Diagnostic struct{ Summary, Detail, Address string }
		}
		label, isDiscovery := "", false
		if json.Unmarshal([]byte(line), &message) == nil && message.Diagnostic.Summary == "Discovered machines are pending" {
			label, isDiscovery = strings.CutPrefix(message.Diagnostic.Address, "metal_discovery_import.")
		}
		if !isDiscovery {
			continue
		}
		d := found[label]
		if d.Pending != nil {
			t.Errorf("pending of %s is planned: %v", label, d.Pending)
		}
		d.Pending = map[string]string{}
		for _, machine := range strings.Split(message.Diagnostic.Detail, "\n") {
			id, reason, _ := strings.Cut(machine, " ")
			d.Pending[id] = reason
		}
		found[label] = d
	}
	return found
}

type discovered struct {
	Hosts   map[string]map[string]any
	Pending map[string]string
}

// names are the hosts, in order.
func (d discovered) names() []string { return slices.Sorted(maps.Keys(d.Hosts)) }

// id is the node UUID of a host.
func (d discovered) id(name string) string { return site.Text(d.Hosts[name]["id"]) }

// wantPending fails a test unless exactly these machines are pending, each with a reason that contains the given text.
func (d discovered) wantPending(t *testing.T, want map[string]string) {
	t.Helper()
	if len(d.Pending) != len(want) {
		t.Errorf("pending is %v, want %v", d.Pending, want)
	}
	for id, reason := range want {
		if !strings.Contains(d.Pending[id], reason) {
			t.Errorf("node %s waits because %q, want %q", id, d.Pending[id], reason)
		}
	}
}

// machines returns the first n machines of a test.
func machines(s *site.Site, n int) []map[string]any {
	var all []map[string]any
	for i := range n {
		all = append(all, s.Machine(i))
	}
	return all
}

// inventory is what a machine posts of its hardware, to be changed.
func inventory(data map[string]any) map[string]any {
	found, _ := data["inventory"].(map[string]any)
	return found
}

// withSerial changes the serial number of a machine.
func withSerial(data map[string]any, serial string) map[string]any {
	vendor, _ := inventory(data)["system_vendor"].(map[string]any)
	vendor["serial_number"] = serial
	return data
}

// withHostname changes the hostname of a machine.
func withHostname(data map[string]any, hostname string) map[string]any {
	inventory(data)["hostname"] = hostname
	return data
}

func TestAccDiscovery_lifecycle(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	s.DiscoverAll(machines(s, 40)...)
	w := acctest.NewWorkspace(t, rack(s, s.Name("rack"), bySerial("r12-")))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "40 to import, 1 to add, 40 to change, 0 to destroy")
	acctest.NoChanges(t, w)

	s.Discover(s.Machine(40))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 to import, 0 to add, 2 to change, 0 to destroy")
	acctest.NoChanges(t, w)

	w.Configure(rack(s, s.Name("rack"), bySerial("other-")))
	output, _ := w.Plan()
	acctest.Mention(t, output, "metal_discovery_import.rack will be updated in-place", "Plan: 0 to add, 1 to change, 0 to destroy")
}

// A name does not change once it is given. The machine's ramdisk has posted its inventory six times.
func TestAccDiscovery_nameStays(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	hostname := s.Name("the-host-name")
	name := "string-literal1-" + hostname + "-string-literal2"
	machine := func() map[string]any { return withHostname(s.Machine(1), hostname) }
	var ghosts []string
	for range 5 {
		ghosts = append(ghosts, s.DiscoverGhost(machine()))
	}
	id := s.Discover(machine())
	config := func(prefix string) string {
		return s.Provider() + discoveryBlock(s, "rack", s.Name("rack"),
			fmt.Sprintf(`name_template = { prefix = %q, suffix = "-string-literal2", hardware_details = "hostname" }`, prefix))
	}
	w := acctest.NewWorkspace(t, config("string-literal1-"))
	want := func(when string) {
		t.Helper()
		got := discoveries(t, w)["rack"]
		if len(got.Hosts) != 1 || got.id(name) != id || s.Node(id)["name"] != name {
			t.Errorf("%s: hosts %v, the node is called %v", when, got.Hosts, s.Node(id)["name"])
		}
		reasons := map[string]string{}
		for _, ghost := range ghosts {
			reasons[ghost] = "duplicate of " + id
		}
		got.wantPending(t, reasons)
		acctest.NoChanges(t, w)
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Discovered machines are pending")
	want("created")
	w.Configure(config("another-"))
	w.Must("apply", "-auto-approve")
	want("another template")
	w.Must("destroy", "-auto-approve")
	if s.Node(id)["name"] != name {
		t.Errorf("after the destroy the node is called %v", s.Node(id)["name"])
	}
	w.Must("apply", "-auto-approve")
	want("created again")
	w.Must("state", "rm", rackAddress)
	w.Must("import", rackAddress, s.Name("rack"))
	if got := discoveries(t, w)["rack"]; got.id(name) != id {
		t.Errorf("imported: %v", got.Hosts)
	}
	w.Must("apply", "-auto-approve")
	want("imported")
}

func TestAccDiscovery_oddMachinesWait(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	twin := s.Name("SN")
	linkLocal := s.Machine(4)
	cards, _ := inventory(linkLocal)["interfaces"].([]any)
	for _, item := range cards {
		card, _ := item.(map[string]any)
		card["ipv4_address"], card["ipv6_address"] = nil, "fe80::1%eno1"
	}
	ids := s.DiscoverAll(
		withHostname(withSerial(s.Machine(0), "A/B/"+twin), s.Name("a")), withHostname(s.Machine(1), ""),
		withSerial(s.Machine(2), twin), withSerial(s.Machine(3), strings.ToLower(twin)), linkLocal, s.Machine(5),
	)
	w := acctest.NewWorkspace(t, s.Provider()+
		discoveryBlock(s, "serial", s.Name("serial"), bySerial("s-"))+
		discoveryBlock(s, "hostname", s.Name("hostname"), `name_template = { prefix = "h-", hardware_details = "hostname" }`)+
		discoveryBlock(s, "ip", s.Name("ip"), `name_template = { prefix = "i-", hardware_details = "ip" }`))
	found := planned(t, w)
	for label, want := range map[string]struct {
		hosts   int
		pending map[string]string
	}{
		"serial": {3, map[string]string{
			ids[0]: "has characters that a name cannot have; name it in names by its MAC address",
			ids[2]: "is also that of node " + ids[3], ids[3]: "is also that of node " + ids[2],
		}},
		"hostname": {5, map[string]string{ids[1]: "no hostname in the inventory"}},
		"ip":       {5, map[string]string{ids[4]: "link-local"}},
	} {
		if got := found[label]; len(got.Hosts) != want.hosts {
			t.Errorf("%s: hosts are %v, want %d", label, got.names(), want.hosts)
		}
		found[label].wantPending(t, want.pending)
	}
}

// One plan has many discoveries of one rack. Each takes the machines that match its rules.
func TestFakeDiscovery_rules(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{DefaultResourceClass: "discovered", DiscoveryKeepsPower: true})
	other := s.Machine(3)
	vendor, _ := inventory(other)["system_vendor"].(map[string]any)
	vendor["manufacturer"] = "Acme"
	inventory(other)["bmc_address"] = "10.12.0.7"
	var ids []string
	for _, data := range []map[string]any{s.Machine(1), s.Machine(2), other, withHostname(s.Machine(4), "host-"+s.Name("")[1:]+"-2")} {
		ids = append(ids, s.Fake.Discover(data))
	}
	unique := s.Name("")[1:]
	serial := func(n int) string { return fmt.Sprintf("SN-%s-%d", unique, n) }
	host := func(n int) string { return fmt.Sprintf("host-%s-%d", unique, n) }
	byHostname := `name_template = { hardware_details = "hostname" }`
	const noFilter = "no filter"
	tests := map[string]struct {
		settings string
		hosts    []string // names
		pending  map[string]string
	}{
		"serial": {bySerial(""), []string{serial(1), serial(2), serial(3), serial(4)}, nil},
		"dns": {bySerial("") + "\n name_style = \"dns\"", []string{
			strings.ToLower(serial(1)), strings.ToLower(serial(2)),
			strings.ToLower(serial(3)), strings.ToLower(serial(4)),
		}, nil},
		"id": {
			`name_template = { prefix = "m-", hardware_details = "provisioning-id" }` + "\n max_hosts = 1",
			[]string{"m-" + ids[0]},
			map[string]string{ids[1]: "max_hosts", ids[2]: "max_hosts", ids[3]: "max_hosts"},
		},
		"mac": {
			`name_template = { hardware_details = "boot-mac" }` + "\n include = [\"" + serial(1) + "\"]",
			[]string{strings.ReplaceAll(s.MAC(1), ":", "-")},
			nil,
		},
		"only": {bySerial("") + "\n include = [" + acctest.Quoted(serial(2)) + ", " + acctest.Quoted(strings.ToUpper(s.MAC(3))) +
			"]", []string{serial(2), serial(3)}, nil},
		"exclude": {bySerial("") + "\n exclude = [" + acctest.Quoted(serial(2)) + ", " + acctest.Quoted(s.MAC(3)) + ", " +
			acctest.Quoted(ids[3]) + "]", []string{serial(1)}, nil},
		"names": {bySerial("") + "\n names = { " + acctest.Quoted(serial(2)) + " = \"slot-02\", " + acctest.Quoted(s.MAC(3)) +
			" = \"slot-03\" }", []string{serial(1), serial(4), "slot-02", "slot-03"}, nil},
		"skip": {
			byHostname,
			[]string{host(1), host(2), host(3)},
			map[string]string{ids[3]: "name " + host(2) + " is taken by node " + ids[1]},
		},
		"append": {
			byHostname + "\n on_collision = \"append-mac\"",
			[]string{host(1), host(2), host(2) + "-" + strings.ReplaceAll(s.MAC(4), ":", "")[6:], host(3)},
			nil,
		},
		"manufacturer": {noFilter + bySerial("") + "\n filter = { manufacturer = \"^Acme\" }", []string{serial(3)}, nil},
		"bmc": {
			noFilter + bySerial("") + "\n filter = { bmc_cidr = \"10.12.0.0/24\", driver = \"fake\" }",
			[]string{serial(3)},
			nil,
		},
		"driver": {noFilter + bySerial("") + "\n filter = { driver = \"^ipmi$\" }", nil, nil},
		"sizes": {noFilter + bySerial("") + "\n filter = { min_cpus = 1, min_memory_mb = 1024, min_disk_gb = 999999, " +
			"product = null }", nil, nil},
	}
	config := s.Provider()
	for label, tt := range tests {
		if settings, ok := strings.CutPrefix(tt.settings, noFilter); ok {
			config += fmt.Sprintf("resource \"metal_discovery_import\" %q {\n  name = %q\n  %s\n}\n", label, label, settings)
		} else {
			config += discoveryBlock(s, label, label, tt.settings)
		}
	}
	w := acctest.NewWorkspace(t, config)
	found := planned(t, w)
	for label, tt := range tests {
		got := found[label]
		slices.Sort(tt.hosts)
		if !slices.Equal(got.names(), tt.hosts) {
			t.Errorf("%s: hosts are %v, want %v", label, got.names(), tt.hosts)
		}
		got.wantPending(t, tt.pending)
	}

	machine := found["serial"].Hosts[serial(1)]
	for key, want := range map[string]any{
		"id": ids[0], "boot_mac": s.MAC(1), "bmc_address": "198.18.0.1", "serial_number": serial(1), "manufacturer": "Example Systems",
		"product": s.Product(), "hostname": host(1), "ip": "198.19.0.1", "cpus": 32.0, "memory_mb": 131072.0,
	} {
		if machine[key] != want {
			t.Errorf("%s is %v, want %v", key, machine[key], want)
		}
	}
	if disks := fmt.Sprint(machine["disks_gb"]); disks != "map[/dev/sda:894]" {
		t.Errorf("disks are %s", disks)
	}

	w.Configure(s.Provider() + discoveryBlock(s, "rack", "rack", byHostname, `on_collision = "error"`))
	output, code := w.Run("plan")
	if code != 1 {
		t.Errorf("the collision did not fail the plan:\n%s", output)
	}
	acctest.Mention(t, output, "Two machines would have the same name", "name "+host(2)+" is taken by node "+ids[1])
}
