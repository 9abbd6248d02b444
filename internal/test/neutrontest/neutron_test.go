package neutrontest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Variables of tools/neutron-up.
const (
	neutronVariable = "METAL_NEUTRON_URL"
	ironicVariable  = "METAL_NEUTRON_ENDPOINT"
	networkVariable = "METAL_NEUTRON_NETWORK"
	otherVariable   = "METAL_NEUTRON_OTHER_NETWORK"
)

// openstack is an Ironic beside a Neutron.
type openstack struct {
	*site.Site
	t       *testing.T
	network string // the network interface of its nodes: flat or neutron
	legacy  bool   // Ironic 21.4
}

// everywhere runs a test with each network interface that keeps VIFs: with the real Ironic, or with the fake of both ranges of versions.
func everywhere(t *testing.T, test func(t *testing.T, o *openstack)) {
	t.Helper()
	t.Parallel()
	for _, network := range []string{"flat", "neutron"} {
		if os.Getenv(neutronVariable) != "" {
			t.Run(network, func(t *testing.T) {
				t.Parallel()
				s := site.StartAt(t, os.Getenv(ironicVariable), "")
				test(t, &openstack{s, t, network, s.Newest() <= 82})
			})
			continue
		}
		for _, version := range []string{"1.82", "1.115"} {
			t.Run(network+" of API "+version, func(t *testing.T) {
				t.Parallel()
				test(t, &openstack{site.StartFake(t, &fakeironic.Server{MaxMicroversion: version}), t, network, version == "1.82"})
			})
		}
	}
}

// vif creates a port of Neutron in the network of all tests. It is deleted when the test ends.
func (o *openstack) vif() (id string) { return o.vifIn(networkVariable, "physnet1") }

// vifElsewhere creates a port in a network that belongs to another physical network.
func (o *openstack) vifElsewhere() (id string) { return o.vifIn(otherVariable, "physnet2") }

func (o *openstack) vifIn(variable, physicalNetwork string) (id string) {
	o.t.Helper()
	if o.Fake != nil {
		return o.Fake.AddVIF(physicalNetwork, physicalNetwork)
	}
	answer := o.neutron(http.MethodPost, "ports",
		map[string]any{"port": map[string]any{"network_id": os.Getenv(variable), "name": o.Name("vif")}})
	id = site.Text(site.Part[map[string]any](o.t, answer, "port")["id"])
	o.t.Cleanup(func() { o.deleteVIF(id) })
	return id
}

// deleteVIF deletes a port in Neutron, bound or not. Ironic does not learn of it.
func (o *openstack) deleteVIF(id string) {
	if o.Fake != nil {
		o.Fake.DeleteVIF(id)
		return
	}
	o.neutron(http.MethodDelete, "ports/"+id, nil)
}

// binding is what Neutron knows of a port.
type binding struct{ mac, host string }

func (o *openstack) binding(id string) binding {
	o.t.Helper()
	if o.Fake != nil {
		p, _ := o.Fake.VIF(id)
		return binding{p.MAC, p.Host}
	}
	port := site.Part[map[string]any](o.t, o.neutron(http.MethodGet, "ports/"+id, nil), "port")
	return binding{site.Text(port["mac_address"]), site.Text(port["binding:host_id"])}
}

// wantBound fails the test unless a port of Neutron is bound to a node, at its card with a MAC address.
func (o *openstack) wantBound(vif, node, mac string) {
	o.t.Helper()
	if got := o.binding(vif); got != (binding{mac, node}) {
		o.t.Errorf("VIF %s is %v, want it bound to %s at %s", vif, got, node, mac)
	}
}

// wantFree fails the test unless a port of Neutron is not bound, and has a MAC address of Neutron's.
func (o *openstack) wantFree(vif string) {
	o.t.Helper()
	if got := o.binding(vif); got.host != "" || !strings.HasPrefix(got.mac, "fa:16:3e:") {
		o.t.Errorf("VIF %s is %v, want it free", vif, got)
	}
}

// wantVIFs fails the test unless Ironic says that exactly these VIFs are attached to a node.
func (o *openstack) wantVIFs(node string, want ...string) {
	o.t.Helper()
	list, _ := o.Must(http.MethodGet, "nodes/"+node+"/vifs", nil)["vifs"].([]any)
	got := []string{}
	for _, each := range list {
		entry, _ := each.(map[string]any)
		got = append(got, site.Text(entry["id"]))
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		o.t.Errorf("attached are %v, want %v", got, want)
	}
}

// neutron sends a request to the real Neutron, and fails the test if it is refused, unless what is to be deleted is gone.
func (o *openstack) neutron(method, path string, body any) (answer map[string]any) {
	o.t.Helper()
	var content []byte // Neutron refuses the body null
	if body != nil {
		content, _ = json.Marshal(body) // a map of texts
	}
	req, err := http.NewRequest(method, os.Getenv(neutronVariable)+"/"+path, bytes.NewReader(content)) //nolint:noctx // ends with the test
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	gone := method == http.MethodDelete && resp.StatusCode == http.StatusNotFound
	if resp.StatusCode/100 != 2 && !gone {
		o.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	_ = json.Unmarshal(text, &answer) // some answers have no body
	return answer
}

// node adds a node with two ports, which boots over the network. It is not cleaned: for that Ironic would wait for a ramdisk.
func (o *openstack) node(fields ...map[string]any) (uuid string) {
	o.t.Helper()
	body := map[string]any{
		"network_interface": o.network, "boot_interface": "ipxe", "automated_clean": false,
		"properties":  map[string]any{"capabilities": "boot_mode:uefi"},
		"driver_info": map[string]any{"deploy_kernel": acctest.Images + "kernel", "deploy_ramdisk": acctest.Images + "ramdisk"},
	}
	for _, more := range fields {
		for key, value := range more {
			body[key] = value
		}
	}
	uuid = site.AddNode(o.t, o.Site, "n1", body)
	for n, physicalNetwork := range []string{"physnet1", "physnet2"} {
		o.Must(http.MethodPost, "ports", map[string]any{
			"node_uuid": uuid, "address": o.MAC(n + 1), "pxe_enabled": n == 0, "physical_network": physicalNetwork,
			"local_link_connection": map[string]any{
				"switch_id": "00:00:00:00:00:01", "port_id": fmt.Sprint("Eth", n),
				"switch_info": "leaf1",
			},
		})
	}
	return uuid
}

// vifs is the HCL of VIFs.
func vifs(ids ...string) string {
	elements := make([]string, len(ids))
	for i, id := range ids {
		elements[i] = "{ id = " + acctest.Quoted(id) + " }"
	}
	return "vifs = [" + strings.Join(elements, ", ") + "]"
}

// patience is after how long a test calls a run a hang. The machine may be busy.
const patience = 5 * time.Minute

// workspace returns a workspace, which is destroyed by the function that it returns.
func (o *openstack) workspace(config string) (w *acctest.Workspace, destroy func()) {
	w = acctest.NewWorkspace(o.t, config)
	w.Patience = patience
	return w, func() { w.Must("destroy", "-auto-approve") }
}

// live returns the configuration of a deployment of a live ISO, which Ironic boots with the deploy interface ramdisk.
func (o *openstack) live(node string, iso *bmc.ISOServer, version string, settings ...string) string {
	content := fmt.Sprintf("live_iso = {\n    url = %q\n    host_content = { nmstate = %q }\n  }", iso.URL(version), version)
	return o.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, content)...)
}
