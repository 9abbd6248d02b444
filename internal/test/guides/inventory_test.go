package guides_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// card has an interface with an address, whose last byte is n, and the MAC address that ends with n.
func card(n int) string {
	return fmt.Sprintf(`interfaces = { eno1 = { mac = "52:54:00:12:00:%02d", addresses = ["203.0.113.%d/24"] } }`, n, n)
}

// inventoryFaults has machines with one fault each, and what the module says of them.
var inventoryFaults = map[string]string{
	`no-bmc = { ` + card(1) + ` }`:                     "no-bmc: it has no bmc_address.",
	`lost = { bmc_address = "n/a", ` + card(31) + ` }`: "lost: it has no bmc_address.",
	`mask = { bmc_address = "192.0.2.32", interfaces = { e = { mac = "52:54:00:12:00:32", addresses = ["203.0.113.32/32"] } } }`: "mask: " +
		"its primary address 203.0.113.32/32 of interface e is in none of networks, so that it has no default route and no name server: " +
		"203.0.113.0/24 contains it, with another prefix length.",
	`far = { bmc_address = "192.0.2.33", interfaces = { e = { mac = "52:54:00:12:00:33", addresses = ["198.18.0.33/24"] } } }`: "far: its " +
		"primary address 198.18.0.33/24 of interface e is in none of networks, so that it has no default route and no name server.",
	`sold = { status = "sold", bmc_address = "192.0.2.2", ` + card(2) + ` }`: "sold: its status sold is not in statuses.",
	`"web 1" = { hostname = "web-1", bmc_address = "192.0.2.3", ` + card(3) +
		` }`: `web 1: Ironic accepts letters, digits, ".", "_", "~" and "-" in a name, at most 255.`,
	`db_1 = { bmc_address = "192.0.2.4", ` + card(4) + ` }`:   "db_1: db_1 is not a host name: set hostname.",
	`twin-1 = { bmc_address = "192.0.2.5", ` + card(5) + ` }`: "twin-1: its BMC 192.0.2.5 is also that of twin-2.",
	`twin-2 = { bmc_address = "192.0.2.5/24", ` + card(6) + ` }`: "twin-2: its BMC 192.0.2.5/24 is also " +
		"that of twin-1.",
	`case = { bmc_address = "192.0.2.7", ` + card(7) +
		` }`: "case: its host name case is also that of CASE.",
	`CASE = { bmc_address = "192.0.2.8", ` + card(8) +
		` }`: "CASE: its host name case is also that of case.",
	`no-mac = { bmc_address = "192.0.2.9", interfaces = { eno1 = { mac = "" } } }`:                                                                                                                                                 "no-mac: none of its interfaces has a MAC address.",
	`short = { bmc_address = "192.0.2.10", interfaces = { e = { mac = "52:54" } } }`:                                                                                                                                               "short: 52:54 of interface e is not a MAC address.",
	`same-mac = { bmc_address = "192.0.2.11", interfaces = { e1 = { mac = "52:54:00:12:00:11" }, e2 = { mac = "5254.0012.0011" } } }`:                                                                                              "same-mac: interface e1 has the MAC address 52:54:00:12:00:11 of same-mac e2; interface e2 has the MAC address 52:54:00:12:00:11 of same-mac e1.",
	`keys = { bmc_address = "192.0.2.12", interfaces = { "e1/1" = { mac = "52:54:00:12:00:12" }, "e1.1" = { mac = "52:54:00:12:00:13" } } }`:                                                                                       "keys: two of its interfaces have names that differ only in characters that network data cannot have.",
	`lo = { bmc_address = "192.0.2.14", interfaces = { e = { mac = "52:54:00:12:00:14" }, lo = { addresses = ["203.0.113.14/24"] } } }`:                                                                                            "lo: interface lo has addresses, but is neither a bond nor a VLAN, and has no MAC address.",
	`length = { bmc_address = "192.0.2.15", interfaces = { e = { mac = "52:54:00:12:00:15", addresses = ["203.0.113.15"] } } }`:                                                                                                    "length: 203.0.113.15 of interface e is not an address with a prefix length.",
	`no-bond = { bmc_address = "192.0.2.16", interfaces = { e = { mac = "52:54:00:12:00:16", bond = "bond0" } } }`:                                                                                                                 "no-bond: interface e is a card of the bond bond0, which the machine does not have.",
	`bond-mac = { bmc_address = "192.0.2.17", interfaces = { e1 = { bond = "b" }, e2 = { mac = "52:54:00:12:00:17", bond = "b" }, b = {} } }`:                                                                                      "bond-mac: interface e1 is a card of the bond b, and has no MAC address.",
	`bond-ip = { bmc_address = "192.0.2.18", interfaces = { e = { mac = "52:54:00:12:00:18", bond = "b", addresses = ["203.0.113.18/24"] }, b = {} } }`:                                                                            "bond-ip: interface e is a card of the bond b, and has addresses.",
	`vlan = { bmc_address = "192.0.2.19", interfaces = { e = { mac = "52:54:00:12:00:19" }, v = { vlan = 1, parent = "eno1", addresses = ["203.0.113.19/24"] } } }`:                                                                "vlan: VLAN v has no parent that is a bond, or a card outside bonds.",
	`vlan-id = { bmc_address = "192.0.2.23", interfaces = { e = { mac = "52:54:00:12:00:23" }, v = { vlan = 4095, parent = "e" } } }`:                                                                                              "vlan-id: VLAN v has the number 4095, which is not from 1 to 4094.",
	`vlans = { bmc_address = "192.0.2.24", interfaces = { e = { mac = "52:54:00:12:00:24" }, v = { vlan = 1, parent = "e", addresses = ["203.0.113.24/24"] }, w = { vlan = 1, parent = "e", addresses = ["203.0.113.25/24"] } } }`: "vlans: the interfaces v and w are both VLAN 1 of e.",
	`primary = { bmc_address = "192.0.2.20", primary_ips = ["203.0.113.99"], ` + card(20) +
		` }`: "primary: its primary address 203.0.113.99 is on none of its interfaces.",
	`routes = { bmc_address = "192.0.2.21", interfaces = { e1 = { mac = "52:54:00:12:00:21", addresses = ["203.0.113.21/24"] }, e2 = { mac = "52:54:00:12:00:22", addresses = ["198.51.100.21/24"] } } }`: "routes: the networks of its primary addresses have several IPv4 gateways: name one address of each IP version in primary_ips.",
}

func TestFakeModules_inventoryNamesEachFault(t *testing.T) {
	t.Parallel()
	w := startModule(t, "inventory").open(t, ".")
	write(t, filepath.Join(w.Dir, "faults.auto.tfvars"), "machines = {\n"+strings.Join(slices.Sorted(maps.Keys(inventoryFaults)), "\n")+
		"\nsound = { bmc_address = \"192.0.2.98\", "+card(98)+" }\n}\n"+
		`networks = { "203.0.113.0/24" = { gateway = "203.0.113.1" }, "198.51.100.0/24" = { gateway = "198.51.100.1" } }`+"\n")
	output := acctest.Fails(t, w, []string{"plan"}, slices.Collect(maps.Values(inventoryFaults))...)
	if strings.Contains(output, "sound:") {
		t.Errorf("a machine without a fault is refused:\n%s", output)
	}
}

// TestFakeModules_inventoryEdits is the table of the module's README.
func TestFakeModules_inventoryEdits(t *testing.T) {
	t.Parallel()
	w := startModule(t, "inventory").open(t, "examples/yaml")
	defer destroy(t, w)
	w.Must(acctest.Apply()...)
	host, deployment := `module.fleet.metal_host.machine["rack1-02"]`, `module.fleet.metal_deployment.machine["rack1-02"]`

	for range 2 { // primary_ips and addresses
		replaceIn(t, w, "machines.yaml", "[203.0.113.11", "[203.0.113.21")
		replaceIn(t, w, "machines.yaml", "[203.0.113.12", "[203.0.113.22")
	}
	wantChanges(t, w, nil)
	w.Must("apply", "saved")
	wantAddresses(t, w, "203.0.113.11", "203.0.113.12") // which the machines have
	replaceIn(t, w, "main.tf", `web = { image = local.image, on_change = "ignore" }`, "web = { image = local.image }")
	wantChanges(t, w, map[string]string{deployment: "update"})
	if rebuilds := w.Save()[deployment].After["rebuilds"]; rebuilds != 1.0 {
		t.Errorf("another address: the plan says %v rebuilds, want 1", rebuilds)
	}
	w.Must("apply", "saved")
	wantAddresses(t, w, "203.0.113.11", "203.0.113.22")
	replaceIn(t, w, "main.tf", "web = { image = local.image }", `web = { image = local.image, on_change = "ignore" }`)
	w.Must(acctest.Apply()...)

	replaceIn(t, w, "machines.yaml", "role: web", "role: web\n    status: offline")
	wantChanges(t, w, map[string]string{host: "update"})
	w.Must("apply", "saved")
	replaceIn(t, w, "machines.yaml", "status: offline", "status: active")
	wantChanges(t, w, map[string]string{host: "update"})
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	replaceIn(t, w, "machines.yaml", "status: active", "status: planned")
	wantChanges(t, w, map[string]string{host: "delete", deployment: "delete"})
	replaceIn(t, w, "machines.yaml", "rack1-02:", "web-1:")
	replaceIn(t, w, "machines.yaml", "status: planned", "status: active")
	acctest.Fails(t, w, []string{"plan"}, "Machine in use would change hands", "Node rack1-02 is deployed", "moved blocks")
	replaceIn(t, w, "machines.yaml", "web-1:", "rack1-02:")
}

// wantAddresses checks the addresses of rack1-01 and rack1-02 in the outputs.
func wantAddresses(t *testing.T, w *acctest.Workspace, want ...string) {
	t.Helper()
	var hosts map[string]struct{ Address string }
	if err := json.Unmarshal([]byte(w.Must("output", "-json", "hosts")), &hosts); err != nil {
		t.Fatal(err)
	}
	if got := []string{hosts["rack1-01"].Address, hosts["rack1-02"].Address}; !slices.Equal(got, want) {
		t.Errorf("the addresses are %q, want %q", got, want)
	}
}

// export runs the script of an example against a server, and returns what it printed.
func export(t *testing.T, example string, env []string, args ...string) (output string, dir string, err error) {
	t.Helper()
	skipWithout(t, "curl", "jq")
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(modules, "inventory/examples", example))); err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), "bash", append([]string{filepath.Join(dir, "export.sh")}, args...)...) //nolint:gosec // ours
	script.Env = append(os.Environ(), env...)
	text, err := script.CombinedOutput()
	return string(text), dir, err
}

// objects reads a list of objects from a file.
func objects(t *testing.T, file string) (list []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, file)), &list); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return list
}

// netBox serves the lists of the example in pages, with the fields that a client asks for, as NetBox does. lost leaves the last device out
// of the pages, but not out of the count.
func netBox(t *testing.T, pageSize int, lost bool) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer nbt_key.secret" {
			http.Error(w, `{"detail": "Invalid token"}`, http.StatusForbidden)
			return
		}
		query := r.URL.Query()
		kind := filepath.Base(r.URL.Path)
		if query.Has("device_id") == (kind == "devices" || kind == "prefixes") {
			http.Error(w, "unexpected filter", http.StatusBadRequest)
			return
		}
		page, all := []map[string]any{}, []map[string]any(nil)
		if !query.Has("site") || query.Get("site") == "ams1" {
			all = objects(t, filepath.Join(modules, "inventory/examples/netbox/netbox", kind+".json"))
		}
		offset, _ := strconv.Atoi(query.Get("offset"))
		end := min(offset+pageSize, len(all))
		for _, object := range all[offset:end] {
			maps.DeleteFunc(object, func(key string, _ any) bool { return !slices.Contains(strings.Split(query.Get("fields"), ","), key) })
			page = append(page, object)
		}
		answer := map[string]any{"count": len(all), "next": nil, "previous": nil, "results": page}
		if end < len(all) {
			query.Set("offset", strconv.Itoa(end))
			answer["next"] = "http://" + r.Host + r.URL.Path + "?" + query.Encode()
		} else if lost && kind == "devices" {
			answer["results"] = page[:len(page)-1]
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestFakeModules_inventoryExportsNetBox(t *testing.T) {
	t.Parallel()
	env := func(s *httptest.Server) []string {
		return []string{"NETBOX_URL=" + s.URL, "NETBOX_TOKEN=nbt_key.secret"}
	}
	output, dir, err := export(t, "netbox", env(netBox(t, 2, false)), "site=ams1", "site=ams1")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, name := range []string{"devices.json", "interfaces.json", "ip-addresses.json", "prefixes.json"} {
		want := objects(t, filepath.Join(modules, "inventory/examples/netbox/netbox", name))
		got := objects(t, filepath.Join(dir, "netbox", name))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%v\nwant\n%v", name, got, want)
		}
	}

	output, _, err = export(t, "netbox", env(netBox(t, 2, true)), "site=ams1", "site=ams1")
	if err == nil || !strings.Contains(output, "dcim/devices changed during the export: 3 of 4 objects") {
		t.Errorf("a page without a device: %v\n%s", err, output)
	}
	output, dir, err = export(t, "netbox", env(netBox(t, 2, false)), "site=ams2", "site=ams1")
	if err == nil || !strings.Contains(output, "no device matches site=ams2") ||
		len(objects(t, filepath.Join(dir, "netbox/devices.json"))) != 4 {
		t.Errorf("no device: %v\n%s", err, output)
	}
	output, _, err = export(t, "netbox", []string{"NETBOX_URL=" + netBox(t, 2, false).URL, "NETBOX_TOKEN=old"}, "site=ams1", "site=ams1")
	if err == nil || !strings.Contains(output, "403") {
		t.Errorf("a wrong token: %v\n%s", err, output)
	}
}

// exportKeeps runs the script of an example, and checks that it fails with a text and leaves all files as they are.
func exportKeeps(t *testing.T, example string, env, args []string, says string) {
	t.Helper()
	output, dir, err := export(t, example, env, args...)
	if err == nil || !strings.Contains(output, says) || strings.ContainsAny(output, "\x1b\u202e") {
		t.Errorf("%s: %v\n%q, want %s", example, err, output, says)
	}
	before := filepath.Join(modules, "inventory/examples", example)
	if diff, err := exec.CommandContext(t.Context(), "diff", "-r", dir, before).CombinedOutput(); err != nil {
		t.Errorf("%s, %s: %v\n%s", example, says, err, diff)
	}
}

// The token goes to the configured server only, and what is no answer replaces nothing.
func TestFakeModules_inventoryExportsStayOnTheirServer(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked for %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(stranger.Close)
	page := func(next any, results ...any) string {
		text, _ := json.Marshal(map[string]any{"count": 1 + len(results), "next": next, "results": append([]any{}, results...)})
		return string(text)
	}
	device := map[string]any{"id": 1, "name": "a"}
	const other = "the next page of dcim/devices is not at"
	for name, tt := range map[string]struct {
		answer   func(w http.ResponseWriter, r *http.Request)
		nautobot string // what the other script says; "": it is not tried
		netBox   string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL+"/api/", http.StatusFound)
		}, "there is no complete answer", "does not answer like NetBox"},
		"nothing":   {func(http.ResponseWriter, *http.Request) {}, "there is no complete answer", "does not answer like NetBox"},
		"no object": {answers(`{"data": null, "count": 0}`), "no device is in AMS01", "does not answer like NetBox"},
		"no device": {
			answers(`{"data": {"devices": [], "prefixes": []}, "count": 0, "next": null, "results": []}`),
			"no device is in AMS01", "no device matches site=ams1",
		},
		"fewer lists": {
			answers(`{"data": {"devices": [{}], "prefixes": []}, "count": 1, "next": null, "results": [{"id": 1}]}`),
			"Nautobot shows no prefixes, and nautobot.json has some", "",
		},
		"error":                 {answers(`{"errors": [{"message": "no \u001b[2J\u202e"}]}`), "Nautobot: no ?[2J?", ""},
		"next page elsewhere":   {answers(page(stranger.URL+"/api/dcim/devices/?offset=1", device)), "", other},
		"next page beside it":   {answers(page("http://127.0.0.1@"+strings.TrimPrefix(stranger.URL, "http://")+"/?x", device)), "", other},
		"next page without TLS": {answers(page("file:///etc/passwd", device)), "", other},
		"a page without an object": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(page("http://" + r.Host + "/api/dcim/devices/?offset=1")))
		}, "", "dcim/devices changed during the export: 0 of 1 objects"},
	} {
		server := httptest.NewServer(http.HandlerFunc(tt.answer))
		t.Cleanup(server.Close)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.netBox != "" {
				exportKeeps(t, "netbox", []string{"NETBOX_URL=" + server.URL, "NETBOX_TOKEN=secret"}, []string{"site=ams1", "site=ams1"}, tt.netBox)
			}
			if tt.nautobot != "" {
				exportKeeps(t, "nautobot", []string{"NAUTOBOT_URL=" + server.URL, "NAUTOBOT_TOKEN=secret"}, []string{"AMS01"}, tt.nautobot)
			}
		})
	}
	lacking := func(list string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			answer := `{"count": 1, "next": null, "results": [{"id": 1}]}`
			if strings.Contains(r.URL.Path, list) {
				answer = `{"count": 0, "next": null, "results": []}`
			}
			_, _ = w.Write([]byte(answer))
		}
	}
	for _, list := range []string{"prefixes", "interfaces", "ip-addresses"} {
		server := httptest.NewServer(http.HandlerFunc(lacking(list)))
		t.Cleanup(server.Close)
		exportKeeps(t, "netbox", []string{"NETBOX_URL=" + server.URL + "/", "NETBOX_TOKEN=secret"}, []string{"site=ams1", "site=ams1"},
			"NetBox shows no "+list+", and netbox/"+list+".json has some")
	}
}

// answers is a server that always answers the same.
func answers(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func TestFakeModules_inventoryExportsNautobot(t *testing.T) {
	t.Parallel()
	want := read(t, filepath.Join(modules, "inventory/examples/nautobot/nautobot.json"))
	failure := "" // of the server
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Query     string
			Variables struct{ Location []string }
		}
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err != nil || r.URL.Path != "/api/graphql/" || r.Header.Get("Authorization") != "Token secret" ||
			!slices.Equal(asked.Variables.Location, []string{"AMS01"}) {
			http.Error(w, fmt.Sprint(r.URL, asked, err), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"data": %s%s}`, want, failure)
	}))
	t.Cleanup(server.Close)
	env := []string{"NAUTOBOT_URL=" + server.URL, "NAUTOBOT_TOKEN=secret"}
	output, dir, err := export(t, "nautobot", env, "AMS01")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if got := read(t, filepath.Join(dir, "nautobot.json")); got != want {
		t.Errorf("nautobot.json is\n%swant\n%s", got, want)
	}
	failure = `, "errors": [{"message": "Cannot query field cf_dns"}]`
	if output, _, err := export(t, "nautobot", env, "AMS01"); err == nil || !strings.Contains(output, "Cannot query field cf_dns") {
		t.Errorf("an answer with errors: %v\n%s", err, output)
	}

	var answer any
	if err := json.Unmarshal([]byte(want), &answer); err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(read(t, filepath.Join(modules, "inventory/examples/nautobot/query.graphql")), "{")
	words := regexp.MustCompile(`\w+|[{}]`).FindAllString(regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(query, ""), -1)
	if selected, shape := selection(&words), shapeOf(answer); !reflect.DeepEqual(selected, shape) {
		t.Errorf("the query selects\n%v\nand the answer has\n%v", selected, shape)
	}
}

// selection reads what a GraphQL query selects between two braces: the fields of each field.
func selection(words *[]string) map[string]any {
	fields, last := map[string]any{}, ""
	for len(*words) > 0 {
		word := (*words)[0]
		*words = (*words)[1:]
		switch word {
		case "}":
			return fields
		case "{":
			fields[last] = selection(words)
		default:
			fields[word], last = map[string]any{}, word
		}
	}
	return fields
}

// shapeOf returns the fields of each field of an answer; those of a list are those that its objects have.
func shapeOf(value any) map[string]any {
	fields := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			fields[key] = shapeOf(inner)
		}
	case []any:
		for _, element := range value {
			merge(fields, shapeOf(element))
		}
	}
	return fields
}

// merge adds the fields of another shape: a field may be null or empty in one object and not in the next.
func merge(fields, more map[string]any) {
	for key, inner := range more {
		known, _ := fields[key].(map[string]any)
		if known == nil {
			known = map[string]any{}
		}
		added, _ := inner.(map[string]any)
		merge(known, added)
		fields[key] = known
	}
}
