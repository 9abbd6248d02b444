package ironic

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestLLDP_readsWhatSwitchesAnnounce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw  string
		want Neighbour
	}{
		"MAC address and name of a port": {
			`[[1, "04aabbccddeeff"], [2, "0545746831"], [5, "6c6561662d31"]]`,
			Neighbour{SwitchID: "aa:bb:cc:dd:ee:ff", SwitchName: "leaf-1", PortID: "Eth1", PortIsName: true},
		},
		"network address": {
			`[[1, "0501c0000201"], [2, "03525400aabb01"]]`,
			Neighbour{SwitchID: "192.0.2.1", PortID: "52:54:00:aa:bb:01"},
		},
		"other types": {`[[3, "0078"], [127, "0080c2010001"]]`, Neighbour{}},
		"description, padding, repeated": {
			`[[2, "0545746831"], [4, "757020"], [5, "6c6561662d3100"], [0, ""], [2, "0545746832"], [0, ""]]`,
			Neighbour{SwitchName: "leaf-1", PortID: "Eth1", PortIsName: true, PortDescription: "up"},
		},
		"heard nothing":      {`[]`, Neighbour{}},
		"control characters": {`[[1, "07"], [2, "050a0d"], [5, "ff"]]`, Neighbour{}},
		"no TLVs":            {`[[1], ["2", "05"], [2, 5], [5, "zz"]]`, Neighbour{}},
	} {
		if got, listened := readLLDP(json.RawMessage(tt.raw)); got != tt.want || !listened {
			t.Errorf("%s: %+v, %v, want %+v", name, got, listened, tt.want)
		}
	}
	for _, raw := range []string{``, `null`, `"lldp"`, `{}`, `[{"a": 1}]`} {
		if got, listened := readLLDP(json.RawMessage(raw)); listened || got != (Neighbour{}) {
			t.Errorf("%q: %+v, %v", raw, got, listened)
		}
	}
}

// Each way in which announcements reach an inventory.
func TestInventory_addsNeighbours(t *testing.T) {
	t.Parallel()
	hooked := Neighbour{SwitchID: "52:54:00:ee:00:01", SwitchName: "leaf-1", PortID: "Eth1"} // hooks do not say of what kind an ID is
	leaf := hooked
	leaf.PortIsName = true
	const raw = `[[1, "04525400ee0001"], [2, "0545746831"], [5, "6c6561662d31"]]`
	const parsed = `{"switch_chassis_id": "52:54:00:ee:00:01", "switch_system_name": "leaf-1", "switch_port_id": "Eth1"}`
	for name, tt := range map[string]struct {
		card, data      string // the key lldp of the card eno1, and plugin_data
		want, unrelated map[string]Neighbour
	}{
		"lldp_raw": {`null`, `{"lldp_raw": {"eno1": ` + raw + `, "bond0": ` + raw +
			`}, "parsed_lldp": {"bond0": ` + parsed + `}}`, map[string]Neighbour{"eno1": leaf}, nil},
		"an older ramdisk": {raw, `{"lldp_raw": {"eno1": null}}`, map[string]Neighbour{"eno1": leaf}, nil},
		"parse-lldp": {
			`null`, `{"parsed_lldp": {"eno1": ` + parsed + `}}`,
			map[string]Neighbour{"eno1": hooked},
			nil,
		},
		"what was received before a hook": {
			raw, `{"parsed_lldp": {"eno1": {"switch_port_id": "Eth2", "switch_port_description": "up"}}}`,
			map[string]Neighbour{"eno1": leaf.or(Neighbour{PortDescription: "up"})},
			nil,
		},
		"ironic-inspector": {
			`null`, `{"all_interfaces": {"eno1": {"lldp_processed": ` + parsed + `}}}`,
			map[string]Neighbour{"eno1": hooked},
			nil,
		},
		"heard nothing": {`[]`, `{}`, map[string]Neighbour{"eno1": {}}, nil},
		"not collected": {`null`, `{"all_interfaces": {"eno1": {"lldp_processed": null}}}`, nil, nil},
		"Redfish, a port that is no card": {
			`null`, `{"parsed_lldp": {"NIC.1-1": ` + parsed + `}}`, nil,
			map[string]Neighbour{"NIC.1-1": hooked},
		},
		"Redfish, a switch in capitals": {
			`null`, `{"parsed_lldp": {"eno1": ` + strings.Replace(parsed, "ee:00", "EE:00", 1) + `}}`,
			map[string]Neighbour{"eno1": hooked},
			nil,
		},
		"Redfish, digits": {
			`null`,
			`{"parsed_lldp": {"eno1": {"switch_port_id": "45:74:68:31"}, "2": {"switch_port_id": "52:54:00:AA:bb:01"}}}`,
			map[string]Neighbour{"eno1": {PortID: "Eth1"}},
			map[string]Neighbour{"2": {PortID: "52:54:00:AA:bb:01"}},
		},
		"Redfish, a BMC that heard nothing": {
			`null`,
			`{"parsed_lldp": {"1": {"switch_chassis_id": "Not Available", "switch_port_id": "No Link"}}}`, nil, nil,
		},
	} {
		var i Inventory
		var data pluginData
		if err := errors.Join(json.Unmarshal([]byte(`{"interfaces": [{"name": "eno1", "lldp": `+tt.card+`}]}`), &i),
			json.Unmarshal([]byte(tt.data), &data)); err != nil {
			t.Fatal(err)
		}
		i.settle(data)
		if !maps.Equal(i.Neighbours, tt.want) || !maps.Equal(i.Unrelated, tt.unrelated) {
			t.Errorf("%s: %v and %v, want %v and %v", name, i.Neighbours, i.Unrelated, tt.want, tt.unrelated)
		}
	}
}

// An inspection by Redfish keeps the spelling of the BMC.
func TestInventory_addressesAreInLowerCase(t *testing.T) {
	t.Parallel()
	i := Inventory{BMCMAC: "52-54-00-AA-00-09"}
	const cards = `{"interfaces": [{"name": "NIC1", "mac_address": "52:54:00:AA:00:01"}, {"name": "NIC2"}]}`
	if err := json.Unmarshal([]byte(cards), &i); err != nil {
		t.Fatal(err)
	}
	i.settle(pluginData{})
	if i.Interfaces[0].MAC != "52:54:00:aa:00:01" || i.Interfaces[1].MAC != "" || i.BMCMAC != "52:54:00:aa:00:09" {
		t.Errorf("%+v", i)
	}
}
