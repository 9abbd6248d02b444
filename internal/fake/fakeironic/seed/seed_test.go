package seed_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/seed"
)

const (
	first  = "4a3c7f10-6d2b-4e1f-9c55-000000000001"
	second = "4a3c7f10-6d2b-4e1f-9c55-000000000002"
	held   = "7f1e2c9a-51d0-4b8e-8a43-0b6c9a7d4e21"
)

// settled reads documents and settles what they have.
func settled(t *testing.T, documents ...string) *seed.Seed {
	t.Helper()
	s := &seed.Seed{}
	for _, document := range documents {
		if err := s.Read("nodes.json", []byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settle(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRead_acceptsWhatClientsPrint(t *testing.T) {
	t.Parallel()
	const shown = `{"uuid": "` + first +
		`", "name": "n1", "provision_state": "manageable", "driver_info": {"redfish_password": "******"}, "resource_class": "gold"}`
	const listed = `{"UUID": "` + first + `", "Name": "n1", "Provisioning State": "manageable", "Driver Info": {"redfish_password": "******"}, "Resource Class": "gold",
		"Current RAID configuration": {}, "Target RAID configuration": {}, "BIOS Interface": "redfish", "Traits": "", "Automated Clean": "", "Deploy Step": "", "Chassis UUID": ""}`
	for name, document := range map[string]string{
		"node show -f json":        shown,
		"a list of them":           `[` + shown + `]`,
		"one after the other":      shown + "\n" + strings.ReplaceAll(strings.ReplaceAll(shown, first, second), `"n1"`, `"n2"`),
		"node list --long -f json": `[` + listed + `]`,
		"GET /v1/nodes/detail": `{"nodes": [` + strings.TrimSuffix(shown, "}") +
			`, "links": [], "ports": [{"href": "http://x/ports", "rel": "self"}]}]}`,
		"an object as a text": strings.Replace(shown, `{"redfish_password": "******"}`,
			`"{\"redfish_password\": \"******\"}"`, 1),
		"a node that is being cleaned": strings.Replace(shown, `"manageable"`,
			`"manageable", "reservation": "ironic-1", "target_power_state": "power on"`, 1),
		"an unknown state":              strings.Replace(shown, `"manageable"`, `"polishing"`, 1),
		"a node with an unknown detail": strings.Replace(shown, `"manageable"`, `"manageable", "shoe_size": 44`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := settled(t, document).Nodes[0]
			info, _ := node["driver_info"].(map[string]any)
			if node["uuid"] != first || node["name"] != "n1" || node["provision_state"] != "manageable" ||
				node["resource_class"] != "gold" || info["redfish_password"] != "******" {
				t.Errorf("the node is %v", node)
			}
			for _, key := range []string{"reservation", "target_power_state", "shoe_size", "links", "ports"} {
				if node[key] != nil {
					t.Errorf("%s is %v", key, node[key])
				}
			}
		})
	}
}

func TestSettle_endsOperations(t *testing.T) {
	t.Parallel()
	for before, want := range map[string][2]string{ // provision state and power state afterwards
		"":               {"available", "power off"},
		"available":      {"available", "power off"},
		"active":         {"active", "power on"},
		"enroll":         {"enroll", ""},
		"verifying":      {"enroll", ""},
		"cleaning":       {"clean failed", "power off"},
		"clean wait":     {"clean failed", "power off"},
		"wait call-back": {"deploy failed", "power off"},
		"deleting":       {"error", "power off"},
		"service wait":   {"service failed", "power off"},
		"rescue":         {"rescue", "power off"},
	} {
		s := settled(t, `{"name": "n1", "provision_state": "`+before+`", "target_provision_state": "available"}`)
		node := s.Nodes[0]
		power, _ := node["power_state"].(string)
		if node["provision_state"] != want[0] || power != want[1] {
			t.Errorf("%q becomes %q, %q, want %q", before, node["provision_state"], power, want)
		}
		interrupted := before != "" && before != want[0]
		if (node["last_error"] != nil) != interrupted || (len(s.Notes) > 0) != interrupted {
			t.Errorf("%q: last_error is %v, the notes are %q", before, node["last_error"], s.Notes)
		}
		if failed := strings.Contains(want[0], "failed") || want[0] == "error"; (node["target_provision_state"] != nil) != failed {
			t.Errorf("%q: the target is %v", before, node["target_provision_state"])
		}
	}
}

func TestSettle_keepsPortsAndAllocationsOfItsNodes(t *testing.T) {
	t.Parallel()
	s := settled(t,
		`[{"UUID": "`+first+`", "Provisioning State": "active", "Instance UUID": "`+held+`"},
		  {"uuid": "`+second+`", "name": "n2", "resource_class": "gold", "allocation_uuid": "11111111-51d0-4b8e-8a43-0b6c9a7d4e21", "ports": [{"address": "52:54:00:00:00:02"}]}]`,
		`[{"UUID": "b81d5e60-2f77-4c0a-a3d9-000000000001", "Address": "52:54:00:00:00:AA", "Node UUID": "`+first+`", "PXE boot enabled": false, "Portgroup UUID": "x"},
		  {"UUID": "b81d5e60-2f77-4c0a-a3d9-000000000002", "Address": "52:54:00:00:00:bb", "Node UUID": "`+held+`"}]`,
		`{"allocations": [{"uuid": "`+held+`", "name": "web-1", "node_uuid": "`+first+`", "state": "active", "candidate_nodes": []},
		  {"uuid": "22222222-51d0-4b8e-8a43-0b6c9a7d4e21", "node_uuid": null, "state": "error"}]}`)
	if len(s.Ports) != 2 || s.Ports[0]["node_uuid"] != second || s.Ports[1]["address"] != "52:54:00:00:00:aa" ||
		s.Ports[1]["pxe_enabled"] != false || s.Ports[1]["portgroup_uuid"] != nil {
		t.Errorf("the ports are %v", s.Ports)
	}
	if len(s.Allocations) != 2 || s.Allocations[0]["name"] != "web-1" || s.Allocations[1]["node_uuid"] != second ||
		s.Allocations[1]["resource_class"] != "gold" {
		t.Errorf("the allocations are %v", s.Allocations)
	}
	if s.Nodes[0]["allocation_uuid"] != held || s.Nodes[1]["instance_uuid"] != s.Nodes[1]["allocation_uuid"] {
		t.Errorf("the nodes are %v", s.Nodes)
	}
	if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "are not in the seed: 1") ||
		!strings.Contains(notes, "reserve no node of the seed: 1") {
		t.Errorf("the notes are %q", s.Notes)
	}
}

func TestSeed_refusesWhatNoIronicHas(t *testing.T) {
	t.Parallel()
	const node = `{"uuid": "` + first + `", "name": "n1"}`
	for _, tt := range []struct{ document, want string }{
		{``, "nodes.json is not JSON: EOF"},
		{`+--`, "nodes.json is not JSON: invalid character"},
		{`"x"`, "nodes.json has neither an object nor a list"},
		{`[7]`, "nodes.json: item 1 of the list is not an object"},
		{`{"ID": "1", "Status": "ACTIVE", "Flavor": "m1", "Image": "x"}`, "nodes.json: a record with flavor, id, image has neither " +
			"a uuid nor a name"},
		{`{"uuid": "x"}`, `node x: its uuid "x" is not a UUID`},
		{`{"name": "rack 1"}`, "node rack 1: no node of Ironic has such a name"},
		{`[` + node + `,` + node + `]`, "node n1: its UUID is there twice"},
		{`[{"name": "n1"}, {"name": "n1"}]`, "node n1: its name is there twice"},
		{`{"name": "n1", "driver_info": "{'a': 1}"}`, "node n1: its driver_info is a text, and not an object"},
		{`{"name": "n1", "properties": []}`, "node n1: its properties is not an object"},
		{`{"name": "n1", "maintenance": "perhaps"}`, "node n1: its maintenance is perhaps, and neither true nor false"},
		{`{"name": "n1", "traits": "CUSTOM_A"}`, "node n1: its traits are not a list"},
		{`{"name": "n1", "resource_class": 7}`, "node n1: its resource_class is 7, and not a text"},
		{`[` + node + `, {"address": "52:54:00:00:00:01"}]`, "port 52:54:00:00:00:01 does not name its node"},
		{`[` + node + `, {"address": "x", "node_uuid": "` + first + `"}]`, "port x: its address is not a MAC address"},
		{
			`{"name": "n1", "ports": [{"address": "52:54:00:00:00:01"}, {"address": "52:54:00:00:00:01"}]}`,
			"port 52:54:00:00:00:01: its address is there twice",
		},
		{`{"state": "active", "name": "web-1"}`, `allocation web-1: its uuid "" is not a UUID`},
	} {
		var s seed.Seed
		err := s.Read("nodes.json", []byte(tt.document))
		if err == nil {
			err = s.Settle()
		}
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.document, err, tt.want)
		}
	}
}

func TestSettle_saysWhatItChanges(t *testing.T) {
	t.Parallel()
	s := settled(t,
		`[{"name": "n1", "provision_state": "polishing", "shoe_size": 44}, {"name": "n2", "provision_state": "cleaning", "links": []}]`)
	notes := strings.Join(s.Notes, "\n")
	for _, want := range []string{
		`node n1 is in state "polishing", which the fake does not know`, "leaves them out: shoe_size",
		"node n2 was cleaning",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q: %q", want, s.Notes)
		}
	}
	if len(s.Notes) != 3 {
		t.Errorf("the notes are %q", s.Notes)
	}
}

func TestRead_saysThatAPageIsNotAll(t *testing.T) {
	t.Parallel()
	s := settled(t, `{"nodes": [{"name": "n1"}], "next": "http://x/v1/nodes/detail?marker=1"}`)
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "first page") {
		t.Errorf("the notes are %q", s.Notes)
	}
}

func TestSeed_keepsOrTells(t *testing.T) {
	t.Parallel()
	node := func(rest string) string { return `{"uuid": "` + first + `", "name": "n1", ` + rest + `}` }
	for name, tt := range map[string]struct{ document, note, want string }{
		"no power state": {
			node(`"provision_state": "available", "power_state": null`),
			`node n1 has power_state None: the BMC of the fake answers, so the fake has it in "power off"`, `"power_state":"power off"`,
		},
		"a power state of error": {
			node(`"provision_state": "active", "power_state": "error"`),
			`node n1 has power_state 'error': the BMC of the fake answers, so the fake has it in "power on"`, `"power_state":"power on"`,
		},
		"a list without power states": {node(`"provision_state": "available"`), "", `"power_state":"power off"`},
		"a lock": {
			node(`"provision_state": "enroll", "reservation": "cond-7"`),
			"node n1 was locked by cond-7: the fake has it without the lock, as Ironic has after a start of its conductor", `"uuid":`,
		},
		"capabilities as an object": {
			node(`"provision_state": "enroll", "properties": {"capabilities": {"boot_mode": "uefi", "cpus": 4}}`),
			`node n1 has an object in properties.capabilities, where Ironic reads only a text: the fake has "boot_mode:uefi,cpus:4"`,
			`"capabilities":"boot_mode:uefi,cpus:4"`,
		},
		"a byte order mark": {"\ufeff" + node(`"provision_state": "enroll"`), "", `"name":"n1"`},
		"numbers": {
			node(`"provision_state": "enroll", "extra": {"a": 9007199254740993, "b": 1.0, "c": 1e3, "d": 12345678901234567890}`),
			"", `"extra":{"a":9007199254740993,"b":1.0,"c":1000.0,"d":12345678901234567890}`,
		},
		"numbers of a text": {
			node(`"provision_state": "enroll", "extra": "{\"a\": 9007199254740993}"`), "", `"extra":{"a":9007199254740993}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settled(t, tt.document)
			if notes := strings.Join(s.Notes, "\n"); notes != tt.note {
				t.Errorf("it notes %q, want %q", notes, tt.note)
			}
			if text := string(api.Encode(s.Nodes[0])); !strings.Contains(text, tt.want) {
				t.Errorf("the node is %s, want %s", text, tt.want)
			}
		})
	}
}
