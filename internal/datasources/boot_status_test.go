package datasources_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// addLiveNode is addNode for the nth node of a test, which is available and can boot a live ISO over the network.
func addLiveNode(t *testing.T, s *site.Site, n int, fields map[string]any) string {
	t.Helper()
	all := map[string]any{
		"boot_interface": "ipxe", "automated_clean": false,
		"driver_info": map[string]any{"deploy_kernel": "http://127.0.0.1:9/kernel", "deploy_ramdisk": "http://127.0.0.1:9/ramdisk"},
	}
	for key, value := range fields {
		all[key] = value
	}
	id := addNode(t, s, fmt.Sprintf("n%d", n), all)
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": s.MAC(n)})
	s.Verb(id, "manage", "manageable")
	s.Verb(id, "provide", "available")
	return id
}

// bootStatusOutput returns the HCL of the data source and of an output with all its attributes.
func bootStatusOutput(live map[string]string) string {
	var entries []string
	for key, settings := range live {
		entries = append(entries, fmt.Sprintf("%q = { %s }", key, settings))
	}
	slices.Sort(entries)
	return data("metal_boot_status", "all", "live_iso = {\n    "+strings.Join(entries, "\n    ")+"\n  }") +
		"output \"all\" {\n  value = data.metal_boot_status.all\n}\n"
}

// bootStatuses returns the value of the output of bootStatusOutput.
func bootStatuses(t *testing.T, w *acctest.Workspace) (hosts map[string]map[string]any, lists map[string][]string) {
	t.Helper()
	var all struct {
		Hosts                         map[string]map[string]any
		Older, Stale, Restart, Manual []string
	}
	output := w.Must("output", "-json", "all")
	if err := json.Unmarshal([]byte(output[strings.Index(output, "{"):]), &all); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return all.Hosts, map[string][]string{"older": all.Older, "stale": all.Stale, "restart": all.Restart, "manual": all.Manual}
}

func TestAccBootStatus_listsOlderAndStaleMachines(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	now := time.Now().UTC().Format(time.RFC3339)
	v1 := fmt.Sprintf("url = %q, shared_content = { proxy = \"1\" }, host_content = { net = \"1\" }", iso.URL("v1")+"?token=a")
	v2 := func(shared, own string) string {
		return fmt.Sprintf("url = %q, shared_content = { proxy = %q }, host_content = { net = %q }", iso.URL("v2")+"?token=b", shared, own)
	}
	const older = "it runs an older image, and is not restarted: "
	hosts := []struct {
		want           string // live_iso in the data source
		current        bool   // it runs the wanted image
		stale          bool
		action, reason string
		obsolete       []any
		byUUID         bool
		protected      bool
		unpowered      bool   // Ironic cannot switch its power
		list           string // the list that has it, besides "stale"
	}{
		{want: v1, current: true, action: "none", reason: "nothing that it uses has changed"},
		{
			want: strings.Replace(v1, `proxy = "1"`, `proxy = "2"`, 1), current: true, stale: true, action: "none",
			reason: "only what all machines share has changed", obsolete: []any{"shared.proxy"},
		},
		{want: v2("1", "1"), action: "none", reason: older + "nothing that it uses has changed", byUUID: true},
		{
			want: v2("2", "1"), stale: true, action: "none", reason: older + "only what all machines share has changed",
			obsolete: []any{"shared.proxy"},
		},
		{
			want: v2("1", "2"), stale: true, action: "restart", reason: "its own configuration changed", obsolete: []any{"host.net"},
			list: "restart", byUUID: true,
		},
		{
			want: v2("1", "2"), stale: true, action: "manual", reason: "its own configuration changed, and Ironic cannot switch its power",
			obsolete: []any{"host.net"}, unpowered: true, list: "manual",
		},
		{want: v2("1", "2"), stale: true, action: "none", reason: older + "it is protected in Ironic; with protected = false, a new " +
			"image can restart it", obsolete: []any{"host.net"}, protected: true},
		{
			want: v2("1", "2") + ", installing = true", stale: true, action: "none", reason: older + "it is being installed",
			obsolete: []any{"host.net"},
		},
		{
			want: v2("1", "2") + ", reboot_policy = \"never\"", stale: true, action: "none", reason: older + `reboot_policy is "never"`,
			obsolete: []any{"host.net"},
		},
		{
			want: v2("1", "1") + ", reboot_policy = \"always\"", stale: true, action: "restart", reason: `reboot_policy is "always"`,
			obsolete: []any{"image"}, list: "restart",
		},
		{
			want: v2("1", "2") + ", built_at = " + fmt.Sprintf("%q", now) + ", quiet_period = \"1h\"", stale: true, action: "wait",
			reason: "its own configuration changed, and the newer image has not settled", obsolete: []any{"host.net"}, list: "restart",
		},
		{
			want: v2("1", "1") + ", registered = false", stale: true, action: "restart",
			reason: "it has not registered, and there is a newer image", obsolete: []any{"image"}, list: "restart",
		},
	}
	var deployments, ids []string
	live, lists := map[string]string{}, map[string][]string{"older": {}, "stale": {}, "restart": {}, "manual": {}}
	var keys []string
	for i, host := range hosts {
		id := addLiveNode(t, s, i, nil)
		ids = append(ids, id)
		deployments = append(deployments, fmt.Sprintf("resource \"metal_deployment\" \"n%d\" {\n  node_id = %q\n  live_iso = { %s }\n}\n",
			i, id, v1))
		key := s.Name(fmt.Sprintf("n%d", i))
		if host.byUUID {
			key = id
		}
		keys = append(keys, key)
		live[key] = host.want
		if host.stale {
			lists["stale"] = append(lists["stale"], key)
		}
		if !host.current {
			lists["older"] = append(lists["older"], key)
		}
		if host.list != "" {
			lists[host.list] = append(lists[host.list], key)
		}
	}
	booted := s.Provider() + strings.Join(deployments, "")
	w := acctest.NewWorkspace(t, booted)
	before := time.Now().Add(-time.Second)
	w.Must("apply", "-auto-approve")
	for i, host := range hosts {
		if host.unpowered {
			s.Patch(ids[i], "add", "/extra/terraform_metal_discovery", map[string]any{"owner": "rack12"})
		}
		if host.protected {
			s.Patch(ids[i], "add", "/protected", true)
		}
	}
	stamps := map[string]any{}
	for _, id := range ids {
		stamps[id] = s.Node(id)["updated_at"]
	}
	empty := s.Name("n99")
	addLiveNode(t, s, 99, nil)
	live[empty], live["missing-"+s.Class()] = v1, v1
	w.Configure(booted + bootStatusOutput(live))
	output := w.Must("apply", "-auto-approve")
	flat := strings.Join(strings.Fields(strings.ReplaceAll(output, "│", "")), " ")
	if !strings.Contains(output, "0 added, 0 changed, 0 destroyed") || !strings.Contains(flat, "such a UUID or name: missing-"+
		s.Class()+".") {
		t.Errorf("the data source changed something, or does not warn of a missing node:\n%s", output)
	}
	got, gotLists := bootStatuses(t, w)
	for i, host := range hosts {
		if host.obsolete == nil {
			host.obsolete = []any{}
		}
		h := got[keys[i]]
		if h["node_id"] != ids[i] || h["name"] != s.Name(fmt.Sprintf("n%d", i)) || h["provision_state"] != "active" || h["boots"] != 1.0 {
			t.Errorf("host %d is %v", i, h)
		}
		at, err := time.Parse(time.RFC3339, fmt.Sprint(h["booted_at"]))
		if err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("host %d was booted at %v", i, h["booted_at"])
		}
		if h["older"] == host.current || h["stale"] != host.stale || h["action"] != host.action || h["reason"] != host.reason ||
			!reflect.DeepEqual(h["obsolete"], host.obsolete) {
			t.Errorf("host %d: older %v, stale %v, action %v, reason %v, obsolete %v; want %v, %v, %s, %s, %v", i, h["older"], h["stale"],
				h["action"], h["reason"], h["obsolete"],
				!host.current, host.stale, host.action, host.reason, host.obsolete)
		}
	}
	for name, want := range lists {
		slices.Sort(want)
		if !slices.Equal(gotLists[name], want) {
			t.Errorf("%s is %v, want %v", name, gotLists[name], want)
		}
	}
	if h := got[empty]; h["older"] != false || h["stale"] != false || h["action"] != "none" || h["booted_at"] != nil || h["boots"] != nil ||
		!reflect.DeepEqual(h["obsolete"], []any{"unknown"}) {
		t.Errorf("a node without a deployment is %v", h)
	}
	if len(got) != len(hosts)+1 {
		t.Errorf("there are %d hosts", len(got))
	}
	for id, stamp := range stamps {
		if s.Node(id)["updated_at"] != stamp {
			t.Errorf("node %s has changed", id)
		}
	}
	for i, host := range hosts {
		if host.protected {
			s.Patch(ids[i], "add", "/protected", false)
		}
	}
	w.Must("destroy", "-auto-approve")
}

func TestFakeBootStatus_takesOneList(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	s.Fake.AddFleet(100, s.Class())
	live := map[string]string{}
	for _, node := range s.Fake.Nodes() {
		live[node.UUID] = `url = "http://127.0.0.1:9/a.iso"`
	}
	w := acctest.NewWorkspace(t, s.Provider()+bootStatusOutput(live))
	w.Must("apply", "-auto-approve")
	if hosts, _ := bootStatuses(t, w); len(hosts) != 100 {
		t.Errorf("there are %d hosts", len(hosts))
	}
	if n := len(s.Fake.Requests()); n > 5 {
		t.Errorf("it took %d requests", n)
	}
}

// The apply asks a person to restart the machine, because Ironic cannot switch its power.
func TestAccBootStatus_restartByHand(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	id := addLiveNode(t, s, 1, nil)
	s.Patch(id, "add", "/extra/terraform_metal_discovery", map[string]any{"owner": "rack12"})
	config := func(version string) string {
		live := fmt.Sprintf("url = %q, host_content = { net = %q }", iso.URL(version), version)
		return s.Provider() + fmt.Sprintf("resource \"metal_deployment\" \"d\" {\n  node_id = %q\n  live_iso = { %s }\n}\n", id, live) +
			strings.Replace(bootStatusOutput(map[string]string{id: live}), "live_iso", "depends_on = [metal_deployment.d]\n  live_iso", 1)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	wantManual := func(when string, want ...string) {
		t.Helper()
		w.Must("apply", "-auto-approve")
		if _, lists := bootStatuses(t, w); !slices.Equal(lists["manual"], want) || !slices.Equal(lists["stale"], want) ||
			!slices.Equal(lists["older"], want) {
			t.Errorf("%s: to restart by hand are %v, stale %v, older %v; want %v", when, lists["manual"], lists["stale"],
				lists["older"], want)
		}
	}
	wantManual("after the first boot")
	w.Configure(config("v2"))
	wantManual("after the apply that asks for it", id)
	wantManual("after the next", id)
	<-time.After(1100 * time.Millisecond) // the provider compares times in seconds
	s.Must(http.MethodPut, "nodes/"+id+"/states/power", map[string]any{"target": "rebooting"})
	s.Await(id, "power_state", "power on")
	wantManual("after the restart")
	w.Must("destroy", "-auto-approve")
}

func TestFakeBootStatus_unknownNodesAreOneWarning(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	live := map[string]string{}
	for n := range 12 {
		live[fmt.Sprintf("missing-%02d", n)] = `url = "http://127.0.0.1:9/a.iso"`
	}
	output := acctest.NewWorkspace(t, s.Provider()+bootStatusOutput(live)).Must("apply", "-auto-approve")
	flat := strings.Join(strings.Fields(strings.ReplaceAll(output, "│", "")), " ")
	if n := strings.Count(output, "No such node"); n != 1 || !strings.Contains(flat, "missing-00, missing-01, missing-02") ||
		!strings.Contains(flat, "missing-09 and 2 more.") {
		t.Errorf("%d warnings, want one with the keys:\n%s", n, output)
	}
}

// With depends_on, one apply creates hosts, deployments and status, and the next plan is empty.
func TestFakeBootStatus_isReadAfterTheDeployments(t *testing.T) {
	t.Parallel()
	s, iso := site.StartFake(t, nil), bmc.ServeISO(t)
	config := func(version, infraEnv, networks string) string {
		return s.Provider() + fmt.Sprintf(`
			variable "networks" { default = { %s } }
			locals {
			  live_iso = { for name, host in metal_host.site : name => {
			    url            = %q
			    shared_content = { infra_env = %q }
			    host_content   = lookup(var.networks, name, null)
			  } }
			}
			resource "metal_deployment" "site" {
			  for_each = metal_host.site
			  node_id  = each.value.id
			  live_iso = local.live_iso[each.key]
			}
			data "metal_boot_status" "site" {
			  live_iso   = local.live_iso
			  depends_on = [metal_deployment.site]
			}
			output "stale" {
			  value = { for name in data.metal_boot_status.site.stale : name => data.metal_boot_status.site.hosts[name].obsolete }
			}
			resource "metal_host" "site" {
			  for_each = toset(["n1", "n2", "n3"])
			  name     = each.key
			  bmc = {
			    address  = "redfish-virtualmedia://192.0.2.${trimprefix(each.key, "n")}/redfish/v1/Systems/1"
			    username = "root"
			    password = "calvin"
			  }
			  target_state = "available"
			}
		`, networks, iso.URL(version), infraEnv)
	}
	w := acctest.NewWorkspace(t, config("v1", "1", ""))
	apply := func(config, stale string) {
		t.Helper()
		w.Configure(config)
		output := w.Must("apply", "-auto-approve")
		if strings.Contains(output, "No such node") {
			t.Errorf("it warns of nodes that the apply creates:\n%s", output)
		}
		output = w.Must("output", "-json", "stale")
		if got := strings.TrimSpace(output[strings.Index(output, "{"):]); got != stale {
			t.Errorf("stale is %s, want %s", got, stale)
		}
		if output, changes := w.Plan(); changes {
			t.Errorf("the second plan is not empty:\n%s", output)
		}
	}
	apply(config("v1", "1", ""), "{}")
	apply(config("v2", "2", `n2 = { nmstate = "uid/1" }`), `{"n1":["shared.infra_env"],"n3":["shared.infra_env"]}`)
	apply(config("v3", "3", `n2 = { nmstate = "uid/1" }`),
		`{"n1":["shared.infra_env"],"n2":["shared.infra_env"],"n3":["shared.infra_env"]}`)
	w.Must("destroy", "-auto-approve")
}

func TestAccBootStatus_wrongSettings(t *testing.T) {
	s := site.Start(t, nil)
	for wrong, want := range map[string]string{
		`version = "1"`: `attribute "url" is required`,
		`url = "http://127.0.0.1:9/a.iso", quiet_period = "soon"`:       `must be a duration`,
		`url = "http://127.0.0.1:9/a.iso", quiet_period = "-5s"`:        `must be a duration`,
		`url = "http://127.0.0.1:9/a.iso", built_at = "yesterday"`:      `must be a time such as`,
		`url = "http://127.0.0.1:9/a.iso", reboot_policy = "sometimes"`: `must be one of`,
	} {
		t.Run(want, func(t *testing.T) {
			test(t, s.Provider()+bootStatusOutput(map[string]string{"n1": wrong}), want)
		})
	}
}
