package ironic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

func TestNode_findByAnyKey(t *testing.T) {
	t.Parallel()
	fake := fleet(3)
	fake.Set("node-001", "driver_info", map[string]any{"redfish_address": "https://192.0.2.7:8443"})
	fake.Set("node-000", "driver_info", map[string]any{"ipmi_address": "192.0.2.8"})
	fake.Set("node-002", "driver_info", map[string]any{"ipmi_address": "192.0.2.8"})
	want := nodeOf(t, fake, "node-001").UUID
	client := newClient(fake)
	for _, ref := range []string{
		want, "node-001", "52:54:00:00:01:00", "52:54:00:00:01:01", "52-54-00-00-01-00", "bmc:192.0.2.7",
		"bmc:192.0.2.7:8443", "bmc:redfish-virtualmedia://192.0.2.7:8443/redfish/v1/Systems/1",
	} {
		if node, err := client.FindNode(t.Context(), ref); err != nil || node.UUID != want {
			t.Errorf("%s: %+v, %v", ref, node, err)
		}
	}
	for _, ref := range []string{ironic.NewUUID(), "node-777", "52:54:00:ff:ff:ff", "bmc:192.0.2.9", "bmc:redfish://192.0.2.7"} {
		if _, err := client.FindNode(t.Context(), ref); !api.IsNotFound(err) {
			t.Errorf("%s: %v, want not found", ref, err)
		}
	}
	if _, err := client.FindNode(t.Context(), "bmc:192.0.2.7/24"); err == nil || !strings.Contains(err.Error(), "has a prefix length") {
		t.Errorf("a prefix length: %v", err)
	}
	if _, err := client.FindNode(t.Context(), "bmc:192.0.2.8"); err == nil ||
		!strings.Contains(err.Error(), "2 nodes have the BMC address") {
		t.Errorf("an address of two: %v", err)
	}
}

// Ironic masks passwords, and not the key of a BMC.
func TestNode_hidesTheKeyOfABMC(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Set("node-000", "driver_info", map[string]any{"ipmi_address": "192.0.2.8", "ipmi_hex_kg_key": "6b6579"})
	client := newClient(fake)
	one, err := client.FindNode(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	all, err := client.ListNodes(t.Context(), ironic.NodeFilter{})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, node := range []*ironic.Node{one, &all[0]} {
		if node.DriverInfo["ipmi_hex_kg_key"] != ironic.Masked || node.DriverInfo["ipmi_address"] != "192.0.2.8" {
			t.Errorf("driver_info is %v", node.DriverInfo)
		}
	}
}

func TestNode_ofInstance(t *testing.T) {
	t.Parallel()
	fake, instance := fleet(2), ironic.NewUUID()
	fake.Set("node-001", "instance_uuid", instance)
	id := nodeOf(t, fake, "node-001").UUID
	client := newClient(fake)
	if node, err := client.NodeOfInstance(t.Context(), instance); err != nil || node.UUID != id {
		t.Errorf("%+v, %v", node, err)
	}
	if _, err := client.NodeOfInstance(t.Context(), ironic.NewUUID()); !api.IsNotFound(err) {
		t.Errorf("%v, want not found", err)
	}
}

func TestNode_filters(t *testing.T) {
	t.Parallel()
	fake := fleet(6)
	yes, no := true, false
	for field, value := range map[string]any{
		"provision_state": "manageable", "resource_class": "storage", "owner": "team-a", "lessee": "team-b", "driver": "ipmi",
		"fault": "clean failure",
		"shard": "s1", "description": "in rack 12", "maintenance": true, "retired": true,
		"instance_uuid": "6f2f6c4e-0000-4000-8000-000000000001",
	} {
		fake.Set("node-003", field, value)
	}
	for name, filter := range map[string]ironic.NodeFilter{
		"provision_state": {ProvisionState: "manageable"}, "resource_class": {ResourceClass: "storage"}, "owner": {Owner: "team-a"},
		"lessee": {Lessee: "team-b"}, "project": {Project: "team-b"}, "driver": {Driver: "ipmi"}, "fault": {Fault: "clean failure"},
		"shard": {Shard: "s1"}, "description": {DescriptionContains: "rack 12"},
		"instance":    {InstanceUUID: "6f2f6c4e-0000-4000-8000-000000000001"},
		"maintenance": {Maintenance: &yes}, "associated": {Associated: &yes}, "retired": {Retired: &yes},
	} {
		if found, err := newClient(fake).ListNodes(t.Context(), filter); err != nil || len(found) != 1 || found[0].Name != "node-003" {
			t.Errorf("%s: %d nodes, %v", name, len(found), err)
		}
	}
	if found, err := newClient(fake).ListNodes(t.Context(), ironic.NodeFilter{Maintenance: &no}); err != nil || len(found) != 5 {
		t.Errorf("out of maintenance: %d nodes, %v", len(found), err)
	}
}

func TestNode_maintenance(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake)
	id := nodeOf(t, fake, "node-000").UUID
	if err := client.SetMaintenance(t.Context(), id, true, "new fans"); err != nil {
		t.Fatal(err)
	}
	if node := nodeOf(t, fake, id); !node.Maintenance || node.MaintenanceReason != "new fans" {
		t.Errorf("%+v", node)
	}
	if err := client.SetMaintenance(t.Context(), id, false, ""); err != nil {
		t.Fatal(err)
	}
	if node := nodeOf(t, fake, id); node.Maintenance {
		t.Errorf("%+v", node)
	}
}

func TestPort_onlyDifferencesAreSent(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Set("node-000", "provision_state", "manageable")
	client := newClient(fake)
	id := nodeOf(t, fake, "node-000").UUID
	const mac = "52:54:00:aa:bb:01"
	yes, no := true, false
	link := map[string]any{"switch_id": "0a:1b:2c:3d:4e:5f", "port_id": "Ethernet3/1", "switch_info": "switch1"}
	spec := ironic.PortSpec{Address: mac, PXEEnabled: &yes, PhysicalNetwork: "prov", LocalLinkConnection: link}
	if _, err := client.CreatePort(t.Context(), id, spec); err != nil {
		t.Fatal(err)
	}
	read := func() ironic.Port {
		ports, err := client.Ports(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return ports[mac]
	}
	if _, err := client.UpdatePort(t.Context(), read(), spec); err != nil || count(fake, http.MethodPatch, "/") != 0 {
		t.Errorf("of the same: %v, %d PATCHes", err, count(fake, http.MethodPatch, "/"))
	}
	spec.PXEEnabled = &no
	if _, err := client.UpdatePort(t.Context(), read(), spec); err != nil || read().PXEEnabled || read().PhysicalNetwork != "prov" {
		t.Errorf("%+v, %v", read(), err)
	}
	port := read()
	for range 2 { // also when it is gone
		if err := client.DeletePort(t.Context(), port); err != nil {
			t.Error(err)
		}
	}
	if port := read(); port.UUID != "" {
		t.Errorf("%+v is still there", port)
	}
}

func TestInventory_ofInspection(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	id := nodeOf(t, fake, "node-000").UUID
	inventory, err := newClient(fake).Inventory(t.Context(), id)
	if err != nil || inventory.CPU.Count != 32 || inventory.Memory.PhysicalMB != 131072 ||
		inventory.System.Manufacturer != "Example Systems" ||
		len(inventory.Disks) != 1 || len(inventory.Interfaces) != 2 || inventory.BootMAC() != "52:54:00:00:00:00" {
		t.Errorf("%+v, %v", inventory, err)
	}
	for name, client := range map[string]*ironic.Client{
		"of a node that was never inspected": newClient(&fakeironic.Server{}),
		"on an old API":                      newClient(fake, func(cfg *api.Config) { cfg.Microversion = 80 }),
	} {
		ref := id
		if name == "of a node that was never inspected" {
			ref = enrolled(t, client, "web")
		}
		if inventory, err := client.Inventory(t.Context(), ref); err != nil || inventory != nil {
			t.Errorf("%s: %+v, %v, want none", name, inventory, err)
		}
	}
}

func TestInventory_bootMAC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"52:54:00:aa:bb:01": "52:54:00:aa:bb:01", "01-52-54-00-AA-BB-01": "52:54:00:aa:bb:01", "52-54-00-aa-bb-01": "52:54:00:aa:bb:01",
		"": "", "eth0": "",
	} {
		var inventory ironic.Inventory
		inventory.Boot.PXEInterface = text
		if got := inventory.BootMAC(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNode_listFields(t *testing.T) {
	t.Parallel()
	fake := fleet(3)
	fake.Set("node-001", "provision_state", "manageable")
	client := newClient(fake)
	found, err := client.ListNodeFields(t.Context(), ironic.NodeFilter{ProvisionState: "available"}, []string{"uuid", "name"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Name != "node-000" || found[0].Driver != "" {
		t.Errorf("got %d nodes, the first is %q of driver %q", len(found), found[0].Name, found[0].Driver)
	}
}

func TestNode_secretKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"ipmi_password": true, "redfish_password": true, "My_PassWord_x": true, "secret": true, "auth_token": true,
		"snmp_auth_passphrase": true,
		"ipmi_hex_kg_key":      true,
		"passwd":               false, "ipmi_username": false, "redfish_address": false, "deploy_kernel": false,
	} {
		if got := ironic.IsSecretKey(key); got != want {
			t.Errorf("IsSecretKey(%q) = %t", key, got)
		}
	}
}
