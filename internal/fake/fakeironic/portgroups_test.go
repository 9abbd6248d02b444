package fakeironic_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// group creates a port group of a node and returns its UUID.
func (a *api) group(node string, fields map[string]any) string {
	a.t.Helper()
	body := map[string]any{"node_uuid": node}
	for key, value := range fields {
		body[key] = value
	}
	return uuidOf(a.t, a.must(http.StatusCreated, http.MethodPost, "/v1/portgroups", body))
}

// port creates a port of a node and returns its path.
func (a *api) port(node, address string, fields map[string]any) string {
	a.t.Helper()
	body := map[string]any{"node_uuid": node, "address": address}
	for key, value := range fields {
		body[key] = value
	}
	return "/v1/ports/" + uuidOf(a.t, a.must(http.StatusCreated, http.MethodPost, "/v1/ports", body))
}

func TestPortgroup_withPortsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	for fake, refusal := range map[*fakeironic.Server]struct {
		status int
		text   string
	}{
		{}:                        {http.StatusBadRequest, "contains ports"},
		{MaxMicroversion: "1.82"}: {http.StatusInternalServerError, "Unexpected error raised by RPC"},
	} {
		a := newAPI(t, fake)
		node := a.node("n1", nil)
		port := a.port(node, someMAC, map[string]any{"portgroup_uuid": a.group(node,
			map[string]any{"name": "bond0", "uuid": "a" + someUUID[1:]})})
		a.refused(refusal.status, refusal.text, http.MethodDelete, "/v1/portgroups/bond0", nil)
		a.must(http.StatusOK, http.MethodPatch, port, patch("add", "/portgroup_uuid", nil))
		a.must(http.StatusNoContent, http.MethodDelete, "/v1/portgroups/bond0", nil)
	}
}

// Ironic 21.4 mistakes the number that a UUID begins with for the number of a group.
func TestPortgroup_isMistakenForAnother(t *testing.T) {
	t.Parallel()
	for version, mistaken := range map[string]bool{"1.82": true, "1.115": false} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		node := a.node("n1", nil)
		first := a.group(node, nil)
		port := a.port(node, someMAC, map[string]any{"portgroup_uuid": first})
		for start, refused := range map[string]bool{
			"1a": mistaken, "01b": mistaken, "1e0f": mistaken, "1e1f": false, "2a": false,
			"12a": false, "a1": false,
		} {
			id := start + someUUID[len(start):]
			path := "/v1/portgroups/" + a.group(node, map[string]any{"uuid": id})
			if refused {
				a.refused(http.StatusBadRequest, "portgroup "+id+" contains ports", http.MethodDelete, path, nil)
				a.must(http.StatusOK, http.MethodPatch, port, patch("add", "/portgroup_uuid", nil))
			}
			a.must(http.StatusNoContent, http.MethodDelete, path, nil)
			a.must(http.StatusOK, http.MethodPatch, port, patch("add", "/portgroup_uuid", first))
		}
	}
}

func TestPortgroup_changesInEveryState(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"manageable", "available", "active"} {
		a := newAPI(t, &fakeironic.Server{})
		node := a.node("n1", nil)
		path := "/v1/portgroups/" + a.group(node, nil)
		a.fake.Set(node, "provision_state", state)
		for _, edit := range []struct {
			field string
			value any
		}{
			{"mode", "802.3ad"},
			{"properties", map[string]any{"miimon": "100"}},
			{"standalone_ports_supported", false},
			{"address", "52:54:00:00:00:01"},
			{"name", "bond1"},
		} {
			got := a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/"+edit.field, edit.value))
			if value, isMap := got[edit.field].(map[string]any); isMap && value["miimon"] != "100" || !isMap &&
				got[edit.field] != edit.value {
				t.Errorf("%s in state %s: %v", edit.field, state, got[edit.field])
			}
		}
		a.refused(http.StatusBadRequest, "'mode' is a mandatory attribute", http.MethodPatch, path, patch("remove", "/mode", nil))
		a.refused(http.StatusBadRequest, "Cannot patch /uuid.", http.MethodPatch, path, patch("add", "/uuid", someUUID))
		a.refused(http.StatusBadRequest, "Unrecognized value 'maybe'", http.MethodPatch, path,
			patch("add", "/standalone_ports_supported", "maybe"))
		a.refused(http.StatusBadRequest, "Requested value was invalid.", http.MethodPatch, path, patch("add", "/node_uuid", someUUID))
	}
}

func TestPortgroup_portsShareANetwork(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	node, other := a.node("n1", nil), a.node("n2", nil)
	group := a.group(node, nil)
	on := func(network string) map[string]any {
		return map[string]any{"portgroup_uuid": group, "physical_network": network}
	}
	first := a.port(node, someMAC, on("a"))
	second := map[string]any{"node_uuid": node, "address": "52:54:00:00:00:02", "portgroup_uuid": group, "physical_network": "b"}
	a.refused(http.StatusConflict, "Port with physical network b cannot become a member of port group "+group, http.MethodPost,
		"/v1/ports", second)
	a.refused(http.StatusBadRequest, "physical_network cannot be changed while", http.MethodPatch, first,
		patch("add", "/physical_network", "b"))
	a.must(http.StatusOK, http.MethodPatch, "/v1/portgroups/"+group, patch("add", "/physical_network", "b"))
	if got := a.must(http.StatusOK, http.MethodGet, first, nil); got["physical_network"] != "b" {
		t.Errorf("the port did not follow its group: %v", got)
	}
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", second)
	foreign := map[string]any{"node_uuid": other, "address": "52:54:00:00:00:03", "portgroup_uuid": group}
	a.refused(http.StatusBadRequest, "belonging to a different node", http.MethodPost, "/v1/ports", foreign)
	a.must(http.StatusOK, http.MethodPatch, "/v1/portgroups/"+group, patch("add", "/standalone_ports_supported", false))
	alone := map[string]any{
		"node_uuid": node, "address": "52:54:00:00:00:04", "portgroup_uuid": group, "physical_network": "b",
		"pxe_enabled": true,
	}
	a.refused(http.StatusConflict, "doesn't support standalone ports", http.MethodPost, "/v1/ports", alone)
}

func TestNetworkData_followsSchema(t *testing.T) {
	t.Parallel()
	link := func(fields map[string]any) map[string]any {
		all := map[string]any{"id": "eth0", "ethernet_mac_address": someMAC}
		for key, value := range fields {
			all[key] = value
		}
		return map[string]any{"links": []any{all}, "networks": []any{}, "services": []any{}}
	}
	bond := func(mode string) map[string]any {
		return link(map[string]any{"type": "bond", "bond_mode": mode, "bond_links": []any{"a"}})
	}
	network := func(fields map[string]any) map[string]any {
		all := map[string]any{"id": "n", "network_id": "n", "link": "eth0"}
		for key, value := range fields {
			all[key] = value
		}
		return map[string]any{"links": []any{}, "networks": []any{all}, "services": []any{}}
	}
	route := func(network, netmask, gateway string) []any {
		return []any{map[string]any{"network": network, "netmask": netmask, "gateway": gateway}}
	}
	for _, maximum := range []string{"1.82", ""} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: maximum})
		node := "/v1/nodes/" + a.node("n1", nil)
		good, bad := bond("802.3ad"), bond("802.1ad")
		if maximum != "" {
			good, bad = bad, good
		}
		for _, document := range []map[string]any{
			good, link(map[string]any{"type": "phy"}), network(map[string]any{"type": "ipv4_dhcp"}),
			network(map[string]any{
				"type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.255.254.0",
				"routes": route("0.0.0.0", "0.0.0.0", "192.0.2.1"),
			}),
			network(map[string]any{
				"type": "ipv6", "ip_address": "2001:db8::5/64", "netmask": "ffff:ffff:ffff:ffff::",
				"routes": route("::", "::", "fe80::1"),
			}),
		} {
			a.must(http.StatusOK, http.MethodPatch, node, patch("add", "/network_data", document))
		}
		for _, document := range []map[string]any{
			link(map[string]any{"type": "ethernet"}), link(map[string]any{"type": "vlan"}), link(nil),
			network(nil), network(map[string]any{"type": "static"}), network(map[string]any{"type": "ipv4", "ip_address": "192.0.2.5/24"}),
			network(map[string]any{"type": "ipv4", "netmask": "255.255.255.255"}),
			network(map[string]any{"type": "ipv4", "routes": route("0.0.0.0", "0.0.0.0", "::1")}),
			network(map[string]any{"type": "ipv6", "ip_address": "2001:db8::5/127"}),
			network(map[string]any{"type": "ipv6", "netmask": "64"}),
			{"links": []any{}, "networks": []any{}, "services": []any{map[string]any{"type": "ntp", "address": "192.0.2.5"}}},
		} {
			a.refused(http.StatusBadRequest, "is not valid under any of the given schemas", http.MethodPatch, node,
				patch("add", "/network_data", document))
		}
		refusal := "Invalid network_data: '802.1ad' is not one of ['802.3ad', 'balance-rr', 'active-backup', 'balance-xor', "
		if maximum != "" {
			refusal = "'bond_mode': '802.3ad', 'ethernet_mac_address'"
		}
		a.refused(http.StatusBadRequest, refusal, http.MethodPatch, node, patch("add", "/network_data", bad))
		a.refused(http.StatusBadRequest, "'links' is a required property", http.MethodPatch, node,
			patch("add", "/network_data", map[string]any{}))
	}
}

// A group's own network is that of its ports. 21.4 has none.
func TestPortgroup_hasItsOwnNetwork(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	node := a.node("n1", nil)
	group := a.group(node, map[string]any{"physical_network": "rack12", "category": "tenant"})
	if got := a.must(http.StatusOK, http.MethodGet, "/v1/portgroups/"+group, nil); got["physical_network"] != "rack12" ||
		got["category"] != "tenant" {
		t.Errorf("the group has %v and %v", got["physical_network"], got["category"])
	}
	bare := map[string]any{"node_uuid": node, "address": someMAC, "portgroup_uuid": group}
	a.refused(http.StatusConflict, "Port with physical network None cannot become a member of port group "+group, http.MethodPost,
		"/v1/ports", bare)
	bare["physical_network"] = "rack12"
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", bare)

	old := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	node = old.node("n1", nil)
	for _, field := range []string{"physical_network", "category"} {
		old.refused(http.StatusBadRequest, "('"+field+"' was unexpected)", http.MethodPost, "/v1/portgroups",
			map[string]any{"node_uuid": node, field: "x"})
		old.refused(http.StatusBadRequest, "Cannot patch /"+field, http.MethodPatch, "/v1/portgroups/"+old.group(node, nil),
			patch("add", "/"+field, "x"))
	}
	group = old.group(node, nil)
	old.port(node, someMAC, map[string]any{"portgroup_uuid": group, "physical_network": "a"})
	second := map[string]any{"node_uuid": node, "address": "52:54:00:00:00:02", "portgroup_uuid": group}
	old.refused(http.StatusConflict, "Port with physical network None cannot become a member", http.MethodPost, "/v1/ports", second)
}

// The interface ironic-networking checks the stored ports and groups before each change, and nothing that is new (measured on 39.0).
func TestSwitchPorts_storedOnesAreCheckedFirst(t *testing.T) {
	t.Parallel()
	plain := newAPI(t, &fakeironic.Server{})
	plain.refused(http.StatusBadRequest, "ironic-networking", http.MethodPost, "/v1/nodes",
		map[string]any{"name": "n1", "driver": "fake-hardware", "network_interface": "ironic-networking"})

	a := newAPI(t, &fakeironic.Server{SwitchPorts: true})
	node := a.node("n1", map[string]any{"network_interface": "ironic-networking"})
	link := map[string]any{"switch_id": "52:54:00:aa:00:01", "port_id": "Ethernet1/1"}
	vlan := func(id any) map[string]any {
		return map[string]any{"switchport": map[string]any{"mode": "access", "native_vlan": id}}
	}
	other := a.port(node, someMAC, nil)
	wrong := a.port(node, "52:54:00:00:00:02", map[string]any{"local_link_connection": link, "extra": vlan("110")})
	group := "/v1/portgroups/" + a.group(node, nil)
	for path, ops := range map[string]any{
		wrong: patch("add", "/extra/switchport", vlan(110.0)["switchport"]), other: patch("add", "/extra/note", 1),
		group: patch("add", "/mode", "802.3ad"),
	} {
		a.refused(http.StatusBadRequest, "Invalid switchport configuration for port ", http.MethodPatch, path, ops)
	}
	a.must(http.StatusNoContent, http.MethodDelete, wrong, nil)
	a.must(http.StatusOK, http.MethodPatch, other, patch("add", "/extra/note", 1))
	a.refused(http.StatusBadRequest, "'110' is not of type 'integer'", http.MethodPatch, other,
		append(patch("add", "/local_link_connection", link), patch("add", "/extra/switchport", vlan("110")["switchport"])...))
	a.refused(http.StatusBadRequest, "is PXE-enabled but has switchport mode 'trunk'", http.MethodPatch, other,
		append(patch("add", "/local_link_connection", link),
			patch("add", "/extra/switchport", map[string]any{"mode": "trunk", "native_vlan": 1})...))
	a.must(http.StatusOK, http.MethodPatch, other, append(patch("add", "/local_link_connection", link),
		patch("add", "/extra/switchport", vlan(110.0)["switchport"])...))
	if got := a.fake.SwitchPort("52:54:00:aa:00:01", "Ethernet1/1"); len(got) > 0 {
		t.Errorf("nothing runs on the machine, and the switch has %v", got)
	}
	a.fake.Set(node, "provision_state", "active")
	a.must(http.StatusOK, http.MethodPatch, other, patch("add", "/extra/switchport", vlan(120.0)["switchport"]))
	if got := a.fake.SwitchPort("52:54:00:aa:00:01", "Ethernet1/1"); got["native_vlan"] != 120.0 {
		t.Errorf("the switch has %v", got)
	}
	a.must(http.StatusOK, http.MethodPatch, group, patch("add", "/extra/lag", map[string]any{"mode": "access", "aggregation_mode": "lacp"}))
	a.refused(http.StatusBadRequest, "has LAG configuration but no member ports", http.MethodPatch, other, patch("add", "/extra/note", 2))
	a.must(http.StatusNoContent, http.MethodPost, "/v1/nodes/"+node+"/vifs", map[string]any{"id": "vif"})
	vifs := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+node+"/vifs", nil)["vifs"].([]any)
	if len(vifs) > 0 {
		t.Errorf("it keeps VIFs: %v", vifs)
	}
}
