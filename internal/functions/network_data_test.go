package functions_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/networkdata"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

var update = flag.Bool("update", false, "write network_data.json, and netplan.json if METAL_ACC_PYTHON is set")

// Each directory below testdata has the description of a network, the network data that the function makes of it, and what cloud-init
// makes of that.
const (
	described = "network.json"
	built     = "network_data.json"
	recorded  = "netplan.json"
)

// cases are the directories.
func cases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/" + described)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	var dirs []string
	for _, file := range files {
		dirs = append(dirs, filepath.Dir(file))
	}
	return dirs
}

func readJSON(t *testing.T, names ...string) (value any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(names...))
	if err == nil {
		err = json.Unmarshal(content, &value)
	}
	if err != nil {
		t.Fatalf("%v: %v", names, err)
	}
	return value
}

func writeJSON(t *testing.T, value any, names ...string) {
	t.Helper()
	content, err := json.MarshalIndent(value, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(names...), append(content, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// build builds the network data of a description.
func build(t *testing.T, network any) any {
	t.Helper()
	text, faults := networkdata.Build(network)
	if len(faults) > 0 {
		t.Fatalf("%s\nhas the faults %v", inJSON(t, network), faults)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// TestNetworkData_recorded compares the function with what it has written before, and what cloud-init has read in that with the
// description. TestAccNetworkData_cloudInit checks the record.
func TestNetworkData_recorded(t *testing.T) {
	t.Parallel()
	for _, dir := range cases(t) {
		network := readJSON(t, dir, described)
		document := build(t, network)
		if *update {
			writeJSON(t, document, dir, built)
		}
		if got, want := inJSON(t, document), inJSON(t, readJSON(t, dir, built)); got != want {
			t.Errorf("%s: the function makes\n%s\nof its description; if cloud-init reads that as it was meant, record it: "+
				"tools/ironic-up -- go test ./internal/functions -update\nwant\n%s", dir, got, want)
		}
		sameReading(t, dir, fromNetplan(readJSON(t, dir, recorded)), meant(object(network)))
	}
}

// readBySystem is what testdata/read_network_data.py says.
type readBySystem struct {
	CloudInit string   `json:"cloud_init"`
	BondModes []string `json:"bond_modes"`
	Results   []struct {
		Refused, Broken string
		Netplan         any
		Files           map[string]map[string]string
	}
}

// toRead is network data for a machine whose network cards have names.
type toRead struct {
	Data any               `json:"data"`
	Macs map[string]string `json:"macs"`
}

// readBy lets cloud-init and Ironic's schema read network data. METAL_ACC_PYTHON is the command of a Python that has Ironic's libraries,
// and METAL_ACC_CLOUD_INIT has those of cloud-init in a directory, or in several that are separated by colons.
func readBy(t *testing.T, python []string, documents []toRead) (read readBySystem) {
	t.Helper()
	script, err := os.ReadFile("testdata/read_network_data.py")
	if err != nil {
		t.Fatal(err)
	}
	libraries := os.Getenv("METAL_ACC_CLOUD_INIT")
	if libraries == "" {
		t.Fatal("METAL_ACC_CLOUD_INIT is not set; tools/ironic-up sets it with METAL_ACC_PYTHON")
	}
	args := slices.Concat(python[1:], []string{"-B", "-c", string(script)}, strings.Split(libraries, ":"))
	cmd := exec.CommandContext(t.Context(), python[0], args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(inJSON(t, documents)), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &read); err != nil {
		t.Fatalf("%v in %s", err, stdout.String())
	}
	if len(read.Results) != len(documents) {
		t.Fatalf("%d results for %d documents", len(read.Results), len(documents))
	}
	t.Log("cloud-init", read.CloudInit)
	return read
}

// What the function builds is what cloud-init reads, for the recorded descriptions and for random ones. Its renderers for RHEL, Debian,
// NetworkManager and systemd-networkd take it as well, and Ironic's schema agrees with Check about it.
func TestAccNetworkData_cloudInit(t *testing.T) {
	t.Parallel()
	site.SkipUnlessAsked(t)
	python := strings.Fields(os.Getenv("METAL_ACC_PYTHON"))
	if len(python) == 0 {
		t.Skip("METAL_ACC_PYTHON is not set")
	}
	names, networks := cases(t), []map[string]any{}
	for _, dir := range names {
		networks = append(networks, object(readJSON(t, dir, described)))
	}
	for seed := range uint64(40) {
		names, networks = append(names, fmt.Sprintf("seed %d", seed)), append(networks, randomNetwork(rand.New(rand.NewPCG(seed, 26))))
	}
	var documents []toRead
	for _, network := range networks {
		macs, _ := macsOf(network)
		documents = append(documents, toRead{build(t, network), macs})
	}
	read := readBy(t, python, documents)
	for i, result := range read.Results {
		t.Run(names[i], func(t *testing.T) {
			t.Parallel()
			if result.Broken != "" {
				t.Fatalf("cloud-init raises %s\n%s\n%s", result.Broken, inJSON(t, networks[i]), inJSON(t, documents[i].Data))
			}
			want := meant(networks[i])
			sameReading(t, "netplan", fromNetplan(result.Netplan), want)
			sameReading(t, "sysconfig", fromSysconfig(result.Files["sysconfig"]), asSysconfig(want))
			namesAddresses(t, result.Files, want)
			agreesWithSchema(t, documents[i].Data, result.Refused, read.BondModes)
			if _, err := os.Stat(filepath.Join(names[i], described)); err != nil {
				return
			}
			if *update {
				writeJSON(t, result.Netplan, names[i], recorded)
			}
			if got, want := inJSON(t, result.Netplan), inJSON(t, readJSON(t, names[i], recorded)); got != want {
				t.Errorf("cloud-init makes\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// asSysconfig leaves out what fromSysconfig does not find.
func asSysconfig(all reading) reading {
	left := reading{}
	for name, d := range all {
		// cloud-init 26.2 loses the two of bonds (reference/network-data.md#bonds-and-vlans)
		d.DNS, d.Search, d.HashPolicy, d.LACPRate, d.AcceptRA = nil, nil, "", "", ""
		if d.Link != "" {
			d.MAC = ""
		}
		left[name] = d
	}
	return left
}

// namesAddresses fails a test unless the other renderers write each address.
func namesAddresses(t *testing.T, files map[string]map[string]string, want reading) {
	t.Helper()
	for _, renderer := range []string{"eni", "network-manager", "networkd"} {
		var all strings.Builder
		for _, content := range files[renderer] {
			all.WriteString(content)
		}
		for name, d := range want {
			for _, address := range d.Addresses {
				if !strings.Contains(all.String(), address) {
					t.Errorf("%s: %s of %s is missing in\n%s", renderer, address, name, all.String())
				}
			}
		}
	}
}

// agreesWithSchema fails a test unless Check says of a document what Ironic's schema says.
func agreesWithSchema(t *testing.T, document any, refused string, bondModes []string) {
	t.Helper()
	faults := networkdata.Check(document)
	for i, link := range list(object(document)["links"]) {
		if mode := text(object(link)["bond_mode"]); mode != "" && !slices.Contains(bondModes, mode) {
			faults = append(faults, networkdata.Fault{Path: fmt.Sprintf("links[%d].bond_mode", i), Must: "is not known to this Ironic"})
		}
	}
	if (len(faults) == 0) != (refused == "") {
		t.Errorf("Ironic's schema says %q, Check says %v, of\n%s", refused, faults, inJSON(t, document))
	}
}

// TestAccNetworkData_schema finds Check and Ironic's schema of one mind about documents that a person might write.
func TestAccNetworkData_schema(t *testing.T) {
	t.Parallel()
	site.SkipUnlessAsked(t)
	python := strings.Fields(os.Getenv("METAL_ACC_PYTHON"))
	if len(python) == 0 {
		t.Skip("METAL_ACC_PYTHON is not set")
	}
	const base = `{
		"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "52:54:00:aa:00:01", "mtu": 1500},
			{"id": "b", "type": "bond", "ethernet_mac_address": "52:54:00:aa:00:01", "bond_mode": "active-backup", "bond_links": ["a"]},
			{"id": "v", "type": "vlan", "vlan_mac_address": "52:54:00:aa:00:01", "vlan_link": "b", "vlan_id": 7}],
		"networks": [{"id": "4", "network_id": "4", "link": "v", "type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.255.255.0",
				"routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1"}]},
			{"id": "6", "network_id": "6", "link": "v", "type": "ipv6", "ip_address": "2001:db8::5", "netmask": "ffff:ffff:ffff:ffff::",
				"routes": [{"network": "::", "netmask": "::", "gateway": "fe80::1"}]}],
		"services": [{"type": "dns", "address": "192.0.2.53"}]}`
	var changes [][2]string
	for from, tos := range map[string][]string{
		`"phy"`: {`"ethernet"`, `"vif"`, `7`}, `"mtu": 1500`: {
			`"mtu": null`, `"mtu": 0`, `"mtu": 65536`, `"mtu": "1500"`, `"mtu": 1500.5`,
			`"name": "lan"`,
		},
		`"52:54:00:aa:00:01"`: {`"52-54-00-AA-00-01"`, `"525400aa0001"`},
		`"vlan_id": 7`:        {`"vlan_id": "7"`, `"vlan_id": 5000`, `"vlan": 7`},
		`"192.0.2.5"`:         {`"192.0.2.5/24"`, `"192.0.2"`, `"::1"`, `"192.0.2.256"`}, `"255.255.255.0"`: {
			`"24"`, `"255.255.255.255"`,
			`"255.255.255.254"`, `"255.0.255.0"`, `"0.0.0.0"`,
		},
		`"2001:db8::5"`: {
			`"2001:db8::5/64"`, `"2001:db8::5/99"`, `"2001:db8::5/100"`, `"2001:db8::5/128"`, `"2001:db8::5/"`,
			`"192.0.2.5"`, `"2001:DB8:0:0:0:0:0:5"`,
		},
		`"ffff:ffff:ffff:ffff::"`: {`"64"`, `"/64"`, `"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"`, `"::"`},
		`"fe80::1"`:               {`"fe80::1%eth0"`, `"fe80::1/64"`, `""`},
		`"type": "ipv4"`:          {`"type": "ipv4_dhcp"`, `"type": "static"`, `"type": "ipv6"`}, `"type": "ipv6"`: {
			`"type": "ipv6_slaac"`,
			`"type": "ipv6_dhcpv6-stateful"`,
		},
		`"type": "dns"`: {`"type": "ntp"`}, `"192.0.2.53"`: {`"2001:db8::53"`, `"2001:db8::53/128"`, `"ns1.example.com"`},
		`"gateway": "192.0.2.1"`: {`"via": "192.0.2.1"`, `"gateway": "::1"`},
		`"active-backup"`:        {`"802.3ad"`, `"802.1ad"`, `"1"`, `"balance-tlb"`}, `"bond_links": ["a"]`: {
			`"bond_links": []`,
			`"bond_links": "a"`, `"members": ["a"]`,
		},
		`"services": [{"type": "dns", "address": "192.0.2.53"}]`: {`"services": []`, `"services": {}`, `"dns": []`},
		`"link": "v"`: {`"link": "nowhere"`, `"on": "v"`},
	} {
		for _, to := range tos {
			changes = append(changes, [2]string{from, to})
		}
	}
	documents := make([]toRead, len(changes))
	for i, change := range changes {
		if !strings.Contains(base, change[0]) {
			t.Fatalf("%s is not in the document", change[0])
		}
		if err := json.Unmarshal([]byte(strings.Replace(base, change[0], change[1], 1)), &documents[i].Data); err != nil {
			t.Fatalf("%v: %v", change, err)
		}
		documents[i].Macs = map[string]string{}
	}
	read := readBy(t, python, documents)
	for i, result := range read.Results {
		t.Run(changes[i][1], func(t *testing.T) {
			t.Parallel()
			agreesWithSchema(t, documents[i].Data, result.Refused, read.BondModes)
		})
	}
}

// TestNetworkData_passesCheck finds nothing to say against what the function makes of random descriptions, but for single IPv4 addresses.
func TestNetworkData_passesCheck(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		document := build(t, randomNetwork(rand.New(rand.NewPCG(seed, 26))))
		if faults := append(networkdata.CheckDrive(document), networkdata.CheckForCloudInit(document)...); len(faults) > 0 ||
			networkdata.Replaceable(document) != "" {
			t.Errorf("seed %d: %v, %q in %s", seed, faults, networkdata.Replaceable(document), inJSON(t, document))
		}
		for _, fault := range networkdata.Check(document) {
			if !strings.HasSuffix(fault.Path, "netmask") || !strings.Contains(fault.Must, `"255.255.255.255"`) {
				t.Errorf("seed %d: %s: %s in %s", seed, fault.Path, fault.Must, inJSON(t, document))
			}
		}
	}
}
