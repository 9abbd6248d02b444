package guides_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// runningImage is instance_info of a machine on which another tool has deployed an image.
func runningImage() map[string]any {
	return map[string]any{
		"image_source":   "http://images.example.com/debian-12.qcow2",
		"image_checksum": "http://images.example.com/SHA256SUMS",
	}
}

// leave makes a node as another tool has left it, in a provision state.
func leave(t *testing.T, s *site.Site, state, mac string, node map[string]any) {
	t.Helper()
	info := node["instance_info"]
	delete(node, "instance_info")
	id := site.Text(s.Must(http.MethodPost, "nodes", node)["uuid"])
	if mac != "" {
		s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": mac})
	}
	if info != nil {
		s.Must(http.MethodPatch, "nodes/"+id, []any{map[string]any{"op": "add", "path": "/instance_info", "value": info}})
	}
	power := "power off"
	if state == "active" {
		power = "power on"
	}
	s.Fake.Set(id, "power_state", power)
	s.Fake.Set(id, "provision_state", state)
}

// leaveMetal3 makes the nodes that the operator of Metal3 has in its Ironic for hosts.yaml: instance_uuid is the UID of the BareMetalHost
// that it has deployed itself.
func leaveMetal3(t *testing.T, s *site.Site) {
	t.Helper()
	leave(t, s, "active", "52:54:00:30:00:01", map[string]any{
		"name": "metal3~worker-0", "driver": "redfish", "boot_interface": "redfish-virtual-media", "automated_clean": true,
		"driver_info": map[string]any{
			"redfish_address": "https://198.51.100.11", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "admin",
			"redfish_password": "password of worker-0", "force_persistent_boot_device": "Default",
		},
		"properties": map[string]any{
			"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64",
			"root_device": map[string]any{"model": "<in> PERC", "size": ">= 400"},
		},
		"instance_info": map[string]any{
			"image_source": "http://images.example.com/debian-12.qcow2", "image_disk_format": "qcow2", "image_os_hash_algo": "sha256",
			"image_os_hash_value": strings.Repeat("0a", 32), "capabilities": map[string]any{},
		},
		"instance_uuid": "6f1c5a52-9f1e-4a0b-8d0f-3f6f6e2d7a01",
	})
	leave(t, s, "active", "52:54:00:30:00:0b", map[string]any{
		"name": "metal3~worker-1", "driver": "idrac", "boot_interface": "idrac-redfish-virtual-media",
		"driver_info": map[string]any{
			"redfish_address": "https://[2001:db8::12]", "redfish_system_id": "/redfish/v1/Systems/System.Embedded.1",
			"redfish_username": "root", "redfish_password": "password of worker-1", "redfish_verify_ca": false,
		},
		"properties": map[string]any{"capabilities": "boot_mode:uefi,secure_boot:true"},
	})
	leave(t, s, "available", "52:54:00:30:00:03", map[string]any{
		"name": "metal3~spare-0", "driver": "ipmi", "automated_clean": false,
		"driver_info": map[string]any{
			"ipmi_address": "198.51.100.13", "ipmi_port": 6230, "ipmi_username": "root", "ipmi_password": "password of worker-1",
			"ipmi_priv_level": "ADMINISTRATOR", "ipmi_verify_ca": false,
		},
		"properties": map[string]any{
			"capabilities": "boot_mode:bios",
			"root_device":  map[string]any{"by_path": "s== /dev/disk/by-path/pci-0000:18:00.0-scsi-0:2:1:0", "rotational": "false"},
		},
	})
}

// leaveBifrost makes the nodes that bifrost has enrolled from baremetal.json. It reserves none of them.
func leaveBifrost(t *testing.T, s *site.Site) {
	t.Helper()
	leave(t, s, "active", "52:54:00:32:00:01", map[string]any{
		"name": "control-0", "uuid": "5f1f0d6e-0b59-4a7c-9f67-5a4f4ac00001", "driver": "redfish",
		"driver_info": map[string]any{
			"redfish_address": "https://198.51.100.31", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "admin",
			"redfish_password": "password of control-0", "deploy_kernel": "http://bifrost.example.com/ipa.kernel",
		},
		"properties": map[string]any{
			"capabilities": "boot_mode:uefi,boot_option:local", "cpu_arch": "x86_64",
			"root_device": map[string]any{"wwn": "0x4000cca77fc4dba1"},
		},
		"instance_info": runningImage(),
	})
	leave(t, s, "active", "52:54:00:32:00:02", map[string]any{
		"name": "control-1", "driver": "ipmi",
		"driver_info": map[string]any{
			"ipmi_address": "198.51.100.32", "ipmi_username": "admin", "ipmi_password": "password of control-1", "ipmi_port": 6230,
		},
		"properties": map[string]any{"cpus": "16", "memory_mb": "32760", "local_gb": "235"}, "instance_info": runningImage(),
	})
	leave(t, s, "available", "52:54:00:32:00:03", map[string]any{
		"name": "spare-1", "driver": "ipmi", "driver_info": map[string]any{
			"ipmi_address": "198.51.100.33", "ipmi_username": "admin", "ipmi_password": "password of spare-1",
		},
	})
}

// leaveMetalsmith makes the instances that metalsmith has deployed by deploy.yml, each with an allocation of its host name.
func leaveMetalsmith(t *testing.T, s *site.Site) {
	t.Helper()
	for n, host := range []string{"compute-0", "compute-1", "control-0"} {
		node, class := fmt.Sprintf("rack1-0%d", n+1), strings.Split(host, "-")[0]
		leave(t, s, "available", "", map[string]any{"name": node, "driver": "fake-hardware", "resource_class": class})
		wanted := map[string]any{"name": host, "resource_class": class, "candidate_nodes": []any{node}}
		if host == "compute-0" {
			site.AddTrait(s, node, "CUSTOM_GPU")
			wanted["traits"] = []any{"CUSTOM_GPU"}
		}
		s.Must(http.MethodPost, "allocations", wanted)
		s.Await(node, "allocation_uuid", site.AllocationNamed(s, host)["uuid"])
		info := runningImage()
		info["display_name"], info["capabilities"] = host, map[string]any{"boot_option": "local"}
		s.Must(http.MethodPatch, "nodes/"+node, []any{
			map[string]any{"op": "add", "path": "/instance_info", "value": info},
			map[string]any{"op": "add", "path": "/extra", "value": map[string]any{"metalsmith_attached_ports": []any{"p"}}},
		})
		s.Verb(node, "active", "active")
	}
}

// enrollPlans makes free machines for the plans of devices.json.
func enrollPlans(t *testing.T, s *site.Site) {
	t.Helper()
	for _, plan := range []string{"c3.small.x86", "m3.large.x86"} {
		leave(t, s, "available", "", map[string]any{"name": plan, "driver": "fake-hardware", "resource_class": plan})
	}
}

// A machine that another tool has enrolled or deployed is taken over from a file of that tool: nothing is cleaned, deployed, restarted or
// released, neither by the first apply nor when resources with on_destroy = "forget" are destroyed.
func TestFakeGuide_machinesOfOtherToolsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	adopted, verified := []string{"manage", "adopt"}, []string{"manage"}
	for name, test := range map[string]struct {
		guide    string
		prepare  func(t *testing.T, s *site.Site)
		same     bool                // the Ironic of Metal3
		verbs    map[string][]string // that a node gets
		free     []string
		imported int
		edit     func(t *testing.T, w *acctest.Workspace) // another form of the file
	}{
		"Metal3 and OpenShift, another Ironic": {guide: "from-metal3/hosts", verbs: map[string][]string{
			"metal3~worker-0": adopted, "metal3~worker-1": adopted, "metal3~spare-0": verified,
			"openshift-master-0": adopted, "openshift-worker-0": adopted,
		}, free: []string{"metal3~spare-0"}},
		"Metal3, its own Ironic": {guide: "from-metal3/hosts", prepare: leaveMetal3, same: true, verbs: map[string][]string{
			"metal3~worker-0": nil, "metal3~worker-1": nil, "metal3~spare-0": nil,
		}, free: []string{"metal3~spare-0"}, imported: 3},
		"Metal3, kubectl get": {guide: "from-metal3/hosts", prepare: leaveMetal3, same: true, verbs: map[string][]string{
			"metal3~worker-0": nil, "metal3~worker-1": nil, "metal3~spare-0": nil,
		}, free: []string{"metal3~spare-0"}, imported: 3, edit: listManifests},
		"kayobe": {guide: "from-metal3/bifrost", prepare: leaveBifrost, verbs: map[string][]string{
			"control-0": nil, "control-1": nil, "spare-1": nil,
		}, free: []string{"spare-1"}, imported: 3, edit: func(t *testing.T, w *acctest.Workspace) {
			t.Helper()
			name := filepath.Join(w.Dir, "baremetal.json") // JSON is YAML
			servers := strings.ReplaceAll(read(t, name), "\n", "\n  ")
			write(t, name, "---\nkolla_bifrost_servers: "+servers+"\nkolla_bifrost_dib_os_element: debian\n")
		}},
		"bifrost": {guide: "from-metal3/bifrost", prepare: leaveBifrost, verbs: map[string][]string{
			"control-0": nil, "control-1": nil, "spare-1": nil,
		}, free: []string{"spare-1"}, imported: 3},
		"metalsmith": {guide: "from-metalsmith", prepare: leaveMetalsmith, verbs: map[string][]string{
			"rack1-01": nil, "rack1-02": nil, "rack1-03": nil,
		}, imported: 3},
		"metalsmith, a file of variables": {guide: "from-metalsmith", prepare: leaveMetalsmith, verbs: map[string][]string{
			"rack1-01": nil, "rack1-02": nil, "rack1-03": nil,
		}, imported: 3, edit: func(t *testing.T, w *acctest.Workspace) {
			t.Helper()
			write(t, filepath.Join(w.Dir, "deploy.yml"), "metalsmith_resource_class: compute\nmetalsmith_instances:\n"+
				"  - {name: compute-0, traits: [CUSTOM_GPU]}\n  - {hostname: compute-1, candidates: [rack1-02]}\n"+
				"  - {hostname: control-0, resource_class: control}\n")
		}},
		"MAAS": {guide: "from-maas/maas", verbs: map[string][]string{
			"web-1": adopted, "web-2": adopted, "spare-1": verified,
		}, free: []string{"spare-1"}},
		"Foreman": {guide: "from-maas/foreman", verbs: map[string][]string{
			"db-1.example.com": adopted, "db-2.example.com": adopted,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, nil)
			if test.prepare != nil {
				test.prepare(t, s)
			}
			w := toolWorkspace(t, s, test.guide)
			if test.same {
				w.Setenv("TF_VAR_same_ironic", "true")
				replaceIn(t, w, "main.tf", `"hosts.yaml", "install-config.yaml"`, `"hosts.yaml"`)
			}
			if test.edit != nil {
				test.edit(t, w)
			}
			before := map[string]map[string]any{}
			for node := range test.verbs {
				before[node] = s.Node(node)
			}
			site.ForgetVerbs(s)
			output := w.Must("apply", "-auto-approve")
			if imported := fmt.Sprintf("Resources: %d imported", test.imported); test.imported > 0 {
				acctest.Mention(t, output, imported)
			}
			acctest.NeverMention(t, output, "Cleaning erases data")
			acctest.NoChanges(t, w)
			if test.guide == "from-metalsmith" { // destroying undeploys
				w.Must("state", "rm", "metal_deployment.instance", "metal_allocation.instance")
			}
			destroy(t, w)
			for node, verbs := range test.verbs {
				wantAsItWas(t, s, node, before[node], verbs, slices.Contains(test.free, node))
			}
		})
	}
}

// listManifests makes one list of the manifests in hosts.yaml, as kubectl prints several objects.
func listManifests(t *testing.T, w *acctest.Workspace) {
	t.Helper()
	name := filepath.Join(w.Dir, "hosts.yaml")
	list := "apiVersion: v1\nkind: List\nitems:\n"
	for _, manifest := range strings.Split(strings.TrimPrefix(read(t, name), "---\n"), "---\n") {
		list += "- " + strings.ReplaceAll(strings.TrimSpace(manifest), "\n", "\n  ") + "\n"
	}
	write(t, name, list+"metadata:\n  resourceVersion: \"\"\n")
}

// toolWorkspace has the example of a guide with the files of another tool.
func toolWorkspace(t *testing.T, s *site.Site, guide string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, "")
	main := filepath.Join(w.Dir, "main.tf")
	if err := os.Remove(main); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(w.Dir, os.DirFS(examples+"/guides/"+guide)); err != nil {
		t.Fatal(err)
	}
	write(t, main, exampleEndpoint.ReplaceAllString(read(t, main), s.Endpoint))
	w.Setenv("TF_VAR_bmc_password", guideVariables["bmc_password"])
	return w
}

// wantAsItWas fails the test if a node got other verbs, was switched, or has lost what another tool has written. before is nil for a node
// that the other tool has not in this Ironic.
func wantAsItWas(t *testing.T, s *site.Site, name string, before map[string]any, verbs []string, free bool) {
	t.Helper()
	node := s.Node(name)
	site.WantVerbs(t, s, site.Text(node["uuid"]), verbs...)
	for _, r := range s.Fake.Requests() {
		if strings.HasSuffix(r.Path, "/states/power") || r.Method == http.MethodDelete {
			t.Errorf("%s %s: %s", r.Method, r.Path, r.Body)
		}
	}
	if state := node["provision_state"]; before == nil {
		if want := map[bool]string{true: "manageable", false: "active"}[free]; state != want {
			t.Errorf("%s is %v, want %s", name, state, want)
		}
		return
	}
	for _, field := range []string{
		"provision_state", "provision_updated_at", "power_state", "driver", "boot_interface", "properties", "driver_info",
	} {
		if !reflect.DeepEqual(node[field], before[field]) {
			t.Errorf("%s of %s was %v and is %v", field, name, before[field], node[field])
		}
	}
	for _, field := range []string{"instance_info", "extra"} {
		for key, value := range before[field].(map[string]any) {
			if now := node[field].(map[string]any)[key]; !reflect.DeepEqual(now, value) {
				text, _ := json.Marshal(now)
				t.Errorf("%s.%s of %s was %v and is %s", field, key, name, value, text)
			}
		}
	}
	if instance := before["instance_uuid"]; instance != nil && node["instance_uuid"] != instance {
		t.Errorf("%s was reserved by %v and is by %v", name, instance, node["instance_uuid"])
	}
}
