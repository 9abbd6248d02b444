package deployment_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// vif is the UUID of a port of Neutron.
func vif(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// vifs is the HCL of VIFs.
func vifs(numbers ...int) string {
	elements := make([]string, len(numbers))
	for i, n := range numbers {
		elements[i] = "{ id = " + acctest.Quoted(vif(n)) + " }"
	}
	return "vifs = [" + strings.Join(elements, ", ") + "]"
}

// attached returns the VIFs of a node.
func attached(s *site.Site, node string) []string {
	list, _ := s.Must(http.MethodGet, "nodes/"+node+"/vifs", nil)["vifs"].([]any)
	ids := []string{}
	for _, each := range list {
		entry, _ := each.(map[string]any)
		ids = append(ids, site.Text(entry["id"]))
	}
	slices.Sort(ids)
	return ids
}

// wantAttached fails a test unless a node has exactly these VIFs.
func wantAttached(t *testing.T, s *site.Site, node string, numbers ...int) {
	t.Helper()
	want := []string{}
	for _, n := range numbers {
		want = append(want, vif(n))
	}
	if got := attached(s, node); !slices.Equal(got, want) {
		t.Errorf("attached are %v, want %v", got, want)
	}
}

// onNeutron adds a node with two ports whose network interface is neutron.
func onNeutron(t *testing.T, s *site.Site, name string) string {
	t.Helper()
	node := site.AddNode(t, s, name, map[string]any{"network_interface": "neutron"})
	for n := range 2 {
		s.Must(http.MethodPost, "ports", map[string]any{
			"node_uuid": node, "address": s.MAC(n + 1), "pxe_enabled": n == 0,
			"local_link_connection": map[string]any{"switch_id": "00:00:00:00:00:01", "port_id": fmt.Sprint("Eth", n)},
		})
	}
	return node
}

func TestFakeDeployment_vifs(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := onNeutron(t, s, "n1")
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config(vifs(1)))
	acctest.NeverMention(t, w.Must("plan"), "VIFs have no effect", "Ports cannot take the VIFs")
	w.Must("apply", "-auto-approve")
	wantAttached(t, s, node, 1)
	acctest.NoChanges(t, w)

	w.Configure(config(vifs(2, 3))) // in place
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
	w.Must("apply", "saved")
	wantAttached(t, s, node, 2, 3)
	acctest.NoChanges(t, w)

	s.Must(http.MethodDelete, "nodes/"+node+"/vifs/"+vif(2), nil) // drift
	if _, changes := w.Plan(); !changes {
		t.Error("the plan does not show that a VIF is not attached any more")
	}
	w.Must("apply", "-auto-approve")
	wantAttached(t, s, node, 2, 3)
	acctest.NoChanges(t, w)

	w.Configure(config()) // not managed any more
	w.Must("apply", "-auto-approve")
	wantAttached(t, s, node, 2, 3)
	acctest.NoChanges(t, w)
	w.Configure(config(vifs(3)))
	w.Must("apply", "-auto-approve")
	wantAttached(t, s, node, 2, 3) // the other is not ours any more
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
	wantAttached(t, s, node)
}

func TestFakeDeployment_vifNamesPort(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := onNeutron(t, s, "n1")
	config := func(n int) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), fmt.Sprintf("vifs = [{ id = %q, mac = %q }]",
			vif(1), s.MAC(n)))
	}
	portWhere := func(is func(port, info map[string]any) bool) map[string]any {
		t.Helper()
		ports, _ := s.Must(http.MethodGet, "ports/detail?node="+node, nil)["ports"].([]any)
		for _, each := range ports {
			port, _ := each.(map[string]any)
			info, _ := port["internal_info"].(map[string]any)
			if is(port, info) {
				return port
			}
		}
		return nil
	}
	at := func() string {
		t.Helper()
		return site.Text(portWhere(func(_, info map[string]any) bool { return info["tenant_vif_port_id"] == vif(1) })["address"])
	}
	w := acctest.NewWorkspace(t, config(2))
	for _, n := range []int{2, 1} {
		w.Configure(config(n))
		w.Must("apply", "-auto-approve")
		if got := at(); got != s.MAC(n) {
			t.Errorf("the VIF is attached to %s, want %s", got, s.MAC(n))
		}
		acctest.NoChanges(t, w)
	}
	w.Configure(config(7))
	acctest.Fails(t, w, acctest.Apply(), "has no port "+s.MAC(7), "Add it to ports of its metal_host")
	if got := at(); got != s.MAC(1) {
		t.Errorf("the running machine has lost its VIF, which is attached to %q", got)
	}
	w.Configure(config(1))
	acctest.NoChanges(t, w)
	second := portWhere(func(port, _ map[string]any) bool { return port["address"] == s.MAC(2) })
	s.Must(http.MethodDelete, "nodes/"+node+"/vifs/"+vif(1), nil) // another client moves it
	s.Must(http.MethodPost, "nodes/"+node+"/vifs", map[string]any{"id": vif(1), "port_uuid": second["uuid"]})
	if _, changes := w.Plan(); !changes {
		t.Error("the plan does not show that the VIF is at another port")
	}
	w.Must(acctest.Apply()...)
	if got := at(); got != s.MAC(1) {
		t.Errorf("the VIF is attached to %s", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Newer Ironics replace network data without an MTU by Neutron's. A plan warns of that; the function's result stays.
func TestFakeDeployment_networkDataAndVIFs(t *testing.T) {
	t.Parallel()
	const warning = "Ironic may replace network_data"
	for name, tt := range map[string]struct {
		server, data string
		vifs         []int
		warns        bool
		want         string
	}{
		"without an MTU": {
			"1.115",
			`jsonencode({ links = [{ id = "mine", type = "phy", ethernet_mac_address = "MAC" }], networks = [], services = [] })`,
			[]int{1},
			true, "iface0",
		},
		"the function's": {
			"1.115", `provider::metal::network_data({ interfaces = { mine = { mac = "MAC" } } })`,
			[]int{1},
			false, "mine",
		},
		"without a VIF": {
			"1.115",
			`jsonencode({ links = [{ id = "mine", type = "phy", ethernet_mac_address = "MAC" }], networks = [], services = [] })`,
			nil, false, "",
		},
		"with Ironic 21.4": {
			"1.82",
			`jsonencode({ links = [{ id = "mine", type = "phy", ethernet_mac_address = "MAC" }], networks = [], services = [] })`,
			[]int{1},
			false, "mine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: tt.server})
			node := onNeutron(t, s, "n1")
			w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), vifs(tt.vifs...),
				"config_drive = { network_data = "+strings.ReplaceAll(tt.data, "MAC", s.MAC(1))+" }"))
			output := w.Must("plan")
			if strings.Contains(output, warning) != tt.warns {
				t.Errorf("the plan says:\n%s", output)
			}
			if tt.warns {
				acctest.Mention(t, output, "In network_data, links[0] has no mtu.", "Give every link an mtu")
			}
			if tt.want == "" {
				return // Ironic deploys no such node without a VIF
			}
			w.Must(acctest.Apply()...)
			stored, _ := s.Fake.Node(node)
			if got := fmt.Sprint(stored.Raw["instance_info"]); !strings.Contains(got, " id:"+tt.want+" ") {
				t.Errorf("instance_info is %s, want the link %s in it", got, tt.want)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// A plan that first gives the host its ports does not say that they cannot take the VIFs.
func TestFakeDeployment_vifsOnPortsOfTheSamePlan(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	config := func(ports string, numbers ...int) string {
		return s.Provider() + fmt.Sprintf("resource \"metal_host\" \"h1\" {\n  name = %q\n  driver = \"fake-hardware\"\n  target_state "+
			"= \"available\"\n  resource_class = %q\n  hardware_interfaces = { network = \"neutron\" }\n  ports = { %s }\n}\n",
			s.Name("h1"), s.Class(), ports) +
			acctest.Deployment("metal_host.h1.id", acctest.Image("v1"), vifs(numbers...))
	}
	link := func(n int) string {
		return fmt.Sprintf(`%q = { local_link_connection = { switch_id = "00:00:00:00:00:01", port_id = "%d" } }`, s.MAC(n), n)
	}
	const warning = "Ports cannot take the VIFs"
	w := acctest.NewWorkspace(t, config(link(1), 1))
	acctest.NeverMention(t, w.Must("plan"), warning)
	w.Must(acctest.Apply()...)
	w.Configure(config(link(1), 1, 2))
	acctest.Mention(t, w.Must("plan"), warning, "has 0 of the 1 free ports or port groups that the VIFs need")
	w.Configure(config(link(1)+", "+link(2), 1, 2))
	acctest.NeverMention(t, w.Must("plan"), warning)
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Configure(config(link(1), 1))
	acctest.Mention(t, w.Must("plan"), "Port has a VIF", "Ironic refuses to delete the port")
	acctest.Fails(t, w, acctest.Apply(), "bound to VIF")
	w.Configure(config(link(1)+", "+link(2), 1))
	w.Must(acctest.Apply()...)
	w.Configure(config(link(1), 1))
	acctest.NeverMention(t, w.Must("plan"), "Port has a VIF")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_vifsOnNoop(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(numbers ...int) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), vifs(numbers...))
	}
	w := acctest.NewWorkspace(t, config(1))
	acctest.Mention(t, w.Must("plan"), "VIFs have no effect", "hardware_interfaces = { network = \"neutron\" }")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(config(2))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// The network interface ironic-networking takes the VLANs of the node's ports, and keeps no VIFs.
func TestFakeDeployment_vifsOnSwitchPorts(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{SwitchPorts: true})
	node := site.AddNode(t, s, "n1", map[string]any{"network_interface": "ironic-networking"})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), vifs(1)))
	acctest.Mention(t, w.Must("plan"), "VIFs have no effect", "is ironic-networking, which accepts VIFs and connects nothing")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A deployment that never began leaves no VIF behind, and one that failed keeps it until it is destroyed.
func TestFakeDeployment_failureLeavesNoVIF(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := onNeutron(t, s, "n1")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), vifs(1, 2, 3)))
	acctest.Mention(t, w.Must("plan"), "Ports cannot take the VIFs", " has 2 of the 3 free ports or port groups that the VIFs need.")
	acctest.Fails(t, w, acctest.Apply(), "Could not deploy node", "attach VIF", "not enough free physical ports")
	wantAttached(t, s, node, 1, 2)
	w.Must("destroy", "-auto-approve")
	wantAttached(t, s, node)
}
