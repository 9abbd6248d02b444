package keystonetest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// ask is a request to Ironic. {node} and the like stand for objects of a scene.
type ask struct {
	method, path string
	body         any
}

// String returns what the page says: method and path, and what is changed or asked for there.
func (a ask) String() string { return strings.TrimSpace(a.where() + " " + a.what()) }

func (a ask) where() string {
	path, _, _ := strings.Cut(a.path, "?")
	return a.method + " " + strings.NewReplacer("{", "", "}", "").Replace(path)
}

func (a ask) what() string {
	switch body := a.body.(type) {
	case []edit:
		return strings.TrimSuffix(body[0].Path, "/k")
	case map[string]any:
		target, _ := body["target"].(string)
		return target
	}
	return ""
}

// content is the body in a scene.
func (a ask) content(scene *strings.Replacer) any {
	text, _ := json.Marshal(a.body) // bodies are literals below
	return json.RawMessage(scene.Replace(string(text)))
}

// edit is a change of an object.
type edit struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// deed is what the provider does for users, in their words. The right to it is the right to all its requests.
type deed struct {
	what     string
	since    int // API version 1.since
	requests []ask
}

func (d deed) String() string {
	var text strings.Builder
	where := ""
	for _, r := range d.requests {
		if r.where() != where {
			if where != "" {
				text.WriteString(", ")
			}
			where = r.where()
			text.WriteString(where)
		}
		if r.what() != "" {
			text.WriteString(" " + r.what())
		}
	}
	return text.String()
}

func get(paths ...string) (requests []ask) {
	for _, path := range paths {
		requests = append(requests, ask{http.MethodGet, path, nil})
	}
	return requests
}

// set is a PATCH that sets attributes of a node, each in a request of its own. Pairs are path and value.
func set(pairs ...any) (requests []ask) {
	for i := 0; i < len(pairs); i += 2 {
		path, _ := pairs[i].(string)
		requests = append(requests, ask{http.MethodPatch, "nodes/{node}", []edit{{"add", path, pairs[i+1]}}})
	}
	return requests
}

// verb is a verb of provisioning. The node is in the state enroll, in which Ironic refuses all but manage, after it has looked at the
// rights: nothing happens to the node (reference/keystone.md#checks-of-rights).
func verb(targets ...string) (requests []ask) {
	for _, target := range targets {
		body := map[string]any{"target": target}
		switch target {
		case "clean", "service":
			body[target+"_steps"] = []any{map[string]any{"interface": "deploy", "step": "erase_devices"}}
		case "rescue":
			body["rescue_password"] = "secret"
		}
		requests = append(requests, ask{http.MethodPut, "nodes/{node}/states/provision", body})
	}
	return requests
}

func ready(method, path string, body any) []ask { return []ask{{method, path, body}} }

func all(lists ...[]ask) (requests []ask) {
	for _, list := range lists {
		requests = append(requests, list...)
	}
	return requests
}

// deeds are in the order of the page.
var deeds = []deed{
	{"read a machine", 0, get("nodes/{node}", "ports?node_uuid={node}", "nodes/{node}/traits", "nodes/{node}/bios", "nodes/{node}/vifs")},
	{"inventory", 81, get("nodes/{node}/inventory")},
	{"history", 78, get("nodes/{node}/history")},
	{"firmware versions", 86, get("nodes/{node}/firmware")},
	{"drivers", 0, all(get("drivers", "drivers/fake-hardware/properties"))},
	{"validation", 0, get("nodes/{node}/validate")},
	{"enrol, delete hosts", 0, all(ready(http.MethodPost, "nodes", map[string]any{"driver": "fake-hardware"}),
		ready(http.MethodDelete, "nodes/{spare}", nil))},
	{"name, BMC, properties", 0, set("/name", "{name}", "/driver_info/fake", "x", "/properties/cpu_arch", "x86_64")},
	{"resource class, description", 0, set("/resource_class", "x", "/description", "x")},
	{"interfaces", 0, set("/bios_interface", "fake", "/deploy_interface", "fake")},
	{"owner", 0, set("/owner", "{owner}")},
	{"lessee", 0, set("/lessee", "{lessee}")},
	{"conductor group", 0, set("/conductor_group", "")},
	{"automated cleaning", 0, set("/automated_clean", false)},
	{"create, delete ports, groups", 0, all(
		ready(http.MethodPost, "ports", map[string]any{"node_uuid": "{node}", "address": "{mac}"}),
		ready(http.MethodDelete, "ports/{port}", nil),
		ready(http.MethodPost, "portgroups", map[string]any{"node_uuid": "{node}"}), ready(http.MethodDelete, "portgroups/{group}", nil))},
	{"change ports, groups", 0, all(
		ready(http.MethodPatch, "ports/{kept}", []edit{{"add", "/extra/k", "v"}}), ready(http.MethodPatch, "portgroups/{keptgroup}",
			[]edit{{"add", "/extra/k", "v"}}))},
	{"traits", 0, all(ready(http.MethodPut, "nodes/{node}/traits/CUSTOM_T", nil), ready(http.MethodPut, "nodes/{node}/traits",
		map[string]any{"traits": []string{"CUSTOM_T"}}), ready(http.MethodDelete, "nodes/{node}/traits/CUSTOM_T", nil))},
	{"manage, provide, inspect, clean", 0, verb("provide", "inspect", "clean", "abort")},
	{"RAID volumes", 0, ready(http.MethodPut, "nodes/{node}/states/raid",
		map[string]any{"logical_disks": []any{map[string]any{"size_gb": 10, "raid_level": "1"}}})},
	{"boot mode, Secure Boot", 76, all(ready(http.MethodPut, "nodes/{node}/states/boot_mode", map[string]any{"target": "uefi"}),
		ready(http.MethodPut, "nodes/{node}/states/secure_boot", map[string]any{"target": false}))},
	{"boot device, NMI", 0, all(ready(http.MethodPut, "nodes/{node}/management/boot_device", map[string]any{"boot_device": "pxe"}),
		ready(http.MethodPut, "nodes/{node}/management/inject_nmi", map[string]any{}))},
	{"console", 0, all(get("nodes/{node}/states/console"), ready(http.MethodPut, "nodes/{node}/states/console",
		map[string]any{"enabled": false}))},
	{"power", 0, ready(http.MethodPut, "nodes/{node}/states/power", map[string]any{"target": "power on"})},
	{"virtual media", 89, ready(http.MethodPost, "nodes/{node}/vmedia",
		map[string]any{"device_type": "cdrom", "image_url": "http://127.0.0.1:9/x.iso"})},
	{"service", 87, verb("service")},
	{"allocation", 0, all(ready(http.MethodPost, "allocations", map[string]any{"resource_class": "none"}), get("allocations/{allocation}"),
		ready(http.MethodPatch, "allocations/{allocation}", []edit{{"add", "/extra/k", "v"}}),
		ready(http.MethodDelete, "allocations/{allocation}", nil))},
	{"`backfill_node`", 0, ready(http.MethodPost, "allocations", map[string]any{"node": "{node}", "resource_class": "none"})},
	{"reservation without allocation", 0, set("/instance_uuid", "{instance}")},
	{"deploy, rebuild, undeploy; live ISO", 0, all(set("/instance_info/k", "v"), verb("active", "rebuild", "deleted"))},
	{"rescue", 0, verb("rescue", "unrescue")},
	{"VIFs", 0, all(ready(http.MethodPost, "nodes/{node}/vifs", map[string]any{"id": "{instance}"}),
		ready(http.MethodDelete, "nodes/{node}/vifs/{instance}", nil))},
	{"protection", 0, set("/protected", false)},
	{"maintenance", 0, all(ready(http.MethodPut, "nodes/{node}/maintenance", map[string]any{"reason": "x"}),
		ready(http.MethodDelete, "nodes/{node}/maintenance", nil))},
	{"retire (quarantine)", 0, set("/retired", true, "/retired_reason", "x")},
	{"marks of runs", 0, set("/extra/k", "v")},
	{"limit over all projects", 0, all(ready(http.MethodPost, "chassis", map[string]any{"description": "x"}),
		get("chassis", "chassis/{chassis}"),
		ready(http.MethodPatch, "chassis/{chassis}", []edit{{"add", "/extra/k", "v"}}),
		ready(http.MethodDelete, "chassis/{chassis}", nil))},
	{"read deploy templates", 0, get("deploy_templates")},
	{"write deploy templates", 0, ready(http.MethodPost, "deploy_templates", map[string]any{
		"name":  "CUSTOM_{unique}",
		"steps": []any{map[string]any{"interface": "deploy", "step": "deploy", "args": map[string]any{}, "priority": 10}},
	})},
	{"read runbooks", 92, get("runbooks")},
	{"write runbooks", 92, ready(http.MethodPost, "runbooks", map[string]any{
		"name":  "CUSTOM_{unique}",
		"steps": []any{map[string]any{"interface": "deploy", "step": "deploy", "args": map[string]any{}, "order": 1}},
	})},
	{"read inspection rules", 96, get("inspection_rules")},
	{"write inspection rules", 96, ready(http.MethodPost, "inspection_rules",
		map[string]any{"actions": []any{map[string]any{"op": "set-attribute", "args": map[string]any{"path": "/extra/k", "value": "v"}}}})},
}

// made returns the UUID of what an answer says was made.
func made(answer string) string {
	var object struct{ UUID string }
	_ = json.Unmarshal([]byte(answer), &object) // every object of Ironic has one
	return object.UUID
}

// scene makes what the deeds of a user need: a node that tenant-a owns and tenant-b leases, and other objects.
func (s *openstack) scene(t *testing.T, user string) *strings.Replacer {
	t.Helper()
	owner, lessee := id(t, "tenant-a"), id(t, "tenant-b")
	pairs := []string{
		"{owner}", owner, "{lessee}", lessee, "{mac}", s.MAC(9), "{name}", s.Name("scene"), "{unique}",
		strings.ToUpper(strings.TrimPrefix(s.Class(), "class-")), "{instance}", foreign(s),
	}
	add := func(name, kind string, body map[string]any) string {
		uuid := fmt.Sprint(s.Must(http.MethodPost, kind, body)["uuid"])
		pairs = append(pairs, "{"+name+"}", uuid)
		t.Cleanup(func() {
			s.Call(http.MethodPut, kind+"/"+uuid+"/maintenance", map[string]any{}) // Ironic deletes no reserved node otherwise
			s.Call(http.MethodDelete, kind+"/"+uuid, nil)
		})
		return uuid
	}
	machine := map[string]any{"driver": "fake-hardware", "owner": owner, "lessee": lessee}
	node := add("node", "nodes", machine)
	add("spare", "nodes", machine)
	for i, name := range []string{"port", "kept"} {
		add(name, "ports", map[string]any{"node_uuid": node, "address": s.MAC(i)})
	}
	for _, name := range []string{"group", "keptgroup"} {
		add(name, "portgroups", map[string]any{"node_uuid": node})
	}
	add("chassis", "chassis", map[string]any{})
	project := owner
	if name := tenant(user); name != "" {
		project = id(t, name)
	}
	add("allocation", "allocations", map[string]any{"resource_class": "none", "owner": project})
	return strings.NewReplacer(pairs...)
}

// foreign is an instance UUID that is unique to the test.
func foreign(s *openstack) string { return site.ForeignInstance(s.Site) }
