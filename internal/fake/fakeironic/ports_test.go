package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

const someMAC = "52:54:00:ab:cd:ef"

func TestPort_addressIsUnique(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	first, second := a.node("n1", nil), a.node("n2", nil)
	got := a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"address": "52:54:00:AB:CD:EF", "node_uuid": first})
	if got["address"] != someMAC || got["pxe_enabled"] != true {
		t.Errorf("port = %v, want its address in lower case and pxe_enabled", got)
	}
	a.refused(http.StatusConflict, "A port with MAC address "+someMAC+" already exists.", http.MethodPost, "/v1/ports",
		map[string]any{"address": someMAC, "node_uuid": second})
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/ports/"+uuidOf(t, got), nil)
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"address": someMAC, "node_uuid": second})
}

func TestPort_listByNodeAndAddress(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(3, "baremetal")
	a := newAPI(t, fake)
	n, _ := fake.Node("node-001")
	for query, want := range map[string]int{
		"": 6, "?node=node-001": 2, "?node_uuid=" + n.UUID: 2, "?address=52:54:00:00:01:00": 1, "?address=52:54:00:00:09:00": 0,
		"?address=": 6,
	} {
		if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/ports"+query, nil), "ports"); len(got) != want {
			t.Errorf("GET /v1/ports%s shows %d ports, want %d", query, len(got), want)
		}
	}
	port, _ := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes/node-001/ports/detail", nil), "ports")[0].(map[string]any)
	if port["node_uuid"] != n.UUID {
		t.Errorf("node_uuid = %v, want %s", port["node_uuid"], n.UUID)
	}
}

func TestPort_connectionOfANodeInUseCannotChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state                   string
		pxe, network, mac, more int
	}{
		{"enroll", 200, 200, 200, 200},
		{"manageable", 200, 200, 200, 200},
		{"available", 409, 409, 200, 200},
		{"active", 409, 409, 409, 200},
	} {
		a := newAPI(t, &fakeironic.Server{})
		node := a.node("n1", nil)
		path := "/v1/ports/" + uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/ports",
			map[string]any{"address": someMAC, "node_uuid": node}))
		a.fake.Set(node, "provision_state", tt.state)
		for _, change := range []struct {
			path  string
			value any
			want  int
		}{
			{"/pxe_enabled", false, tt.pxe},
			{"/physical_network", "prov", tt.network},
			{"/address", "52:54:00:00:00:01", tt.mac},
			{"/extra/a", 1, tt.more},
		} {
			if got := a.do(http.MethodPatch, path, patch("add", change.path, change.value)); got.status != change.want {
				t.Errorf("PATCH %s of a port whose node is %s = %d %s, want %d", change.path, tt.state, got.status,
					got.fault(), change.want)
			}
		}
	}
}

func TestVIF_isNotStored(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	a.must(http.StatusNoContent, http.MethodPost, "/v1/nodes/n1/vifs", map[string]any{"id": someUUID})
	if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1/vifs", nil), "vifs"); len(got) != 0 {
		t.Errorf("vifs = %v, want none", got)
	}
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/nodes/n1/vifs/"+someUUID, nil)
}

func TestVIF_neutronKeepsAndNeedsIt(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	node := a.node("n1", map[string]any{"network_interface": "neutron", "deploy_interface": "ramdisk", "boot_interface": "ipxe"})
	port := uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{
		"address": someMAC, "node_uuid": node, "local_link_connection": map[string]any{"switch_id": "00:00:00:00:00:01", "port_id": "Eth1"},
	}))
	a.fake.Set(node, "instance_info", map[string]any{"boot_iso": "http://images/a.iso"})
	a.fake.Set(node, "provision_state", "available")
	deploy := func(want string) {
		a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/states/provision", map[string]any{"target": "active"})
		if got := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1", nil)["provision_state"]; got != want {
			t.Errorf("the node is %v, want %s", got, want)
		}
	}
	deploy("deploy failed")
	vif := map[string]any{"id": someUUID, "port_uuid": port}
	a.must(http.StatusNoContent, http.MethodPost, "/v1/nodes/n1/vifs", vif)
	a.must(http.StatusConflict, http.MethodPost, "/v1/nodes/n1/vifs", vif)
	a.must(http.StatusBadRequest, http.MethodPost, "/v1/nodes/n1/vifs", map[string]any{"id": port}) // no port is free
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/nodes/n1/vifs/"+someUUID, nil)
	a.must(http.StatusBadRequest, http.MethodDelete, "/v1/nodes/n1/vifs/"+someUUID, nil)
	a.must(http.StatusNoContent, http.MethodPost, "/v1/nodes/n1/vifs", vif)
	deploy("active")
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/states/provision", map[string]any{"target": "deleted"})
	if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1/vifs", nil), "vifs"); len(got) != 0 {
		t.Errorf("after the undeploy, vifs = %v", got)
	}
}

// Like Ironic 39.0, the fake replaces network data in which a link has no MTU, if there is a VIF.
func TestVIF_replacesNetworkData(t *testing.T) {
	t.Parallel()
	own := func(mtu any) map[string]any {
		return map[string]any{
			"links":    []any{map[string]any{"id": "mine", "type": "phy", "ethernet_mac_address": someMAC, "mtu": mtu}},
			"networks": []any{}, "services": []any{},
		}
	}
	for name, tt := range map[string]struct {
		server, network string
		data            map[string]any
		want            string
	}{
		"an MTU":        {"1.115", "neutron", own(1500), "mine"},
		"no MTU":        {"1.115", "neutron", own(nil), "iface0"},
		"empty":         {"1.115", "flat", map[string]any{"links": []any{}, "networks": []any{}, "services": []any{}}, "iface0"},
		"Ironic 21.4":   {"1.82", "neutron", own(nil), "mine"},
		"without VIFs":  {"1.115", "noop", own(nil), "mine"},
		"without a key": {"1.115", "neutron", nil, "iface0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: tt.server})
			node := a.node("n1", map[string]any{"network_interface": tt.network})
			link := map[string]any{"switch_id": "52:54:00:aa:00:01", "port_id": "Ethernet1/1"}
			a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{
				"address": someMAC, "node_uuid": node,
				"local_link_connection": link,
			})
			a.fake.Set(node, "provision_state", "available")
			a.must(http.StatusNoContent, http.MethodPost, "/v1/nodes/n1/vifs", map[string]any{"id": someUUID})
			drive := map[string]any{"meta_data": map[string]any{}}
			if tt.data != nil {
				drive["network_data"] = tt.data
			}
			a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/states/provision",
				map[string]any{"target": "active", "configdrive": drive})
			stored, _ := a.fake.Node(node)
			if got := fmt.Sprint(stored.Raw["instance_info"]); !strings.Contains(got, " id:"+tt.want+" ") {
				t.Errorf("instance_info is %s, want the link %s in it", got, tt.want)
			}
		})
	}
}

func TestChassis_uuidIsUnique(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	body := map[string]any{"uuid": someUUID, "description": "lock", "extra": map[string]any{"by": "me"}}
	a.must(http.StatusCreated, http.MethodPost, "/v1/chassis", body)
	a.refused(http.StatusConflict, "already exists", http.MethodPost, "/v1/chassis", body)
	if got := a.must(http.StatusOK, http.MethodGet, "/v1/chassis/"+someUUID, nil); got["description"] != "lock" ||
		got["created_at"] == nil {
		t.Errorf("chassis = %v", got)
	}
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/chassis/"+someUUID, nil)
	a.must(http.StatusNotFound, http.MethodDelete, "/v1/chassis/"+someUUID, nil)
}

func TestDriver_listWithConductors(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	if got := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/drivers", nil), "drivers"); len(got) != 5 {
		t.Errorf("%d drivers, want 5", len(got))
	}
	conductor, _ := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/conductors", nil), "conductors")[0].(map[string]any)
	if conductor["alive"] != true {
		t.Errorf("conductor = %v, want it alive", conductor)
	}
	a.must(http.StatusNotFound, http.MethodGet, "/v1/drivers/nope", nil)
}
