package fakeironic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// inspect sends a request to an ironic-inspector.
func inspect(t *testing.T, inspector http.Handler, path string) (status int, header http.Header, body map[string]any) {
	t.Helper()
	recorder := httptest.NewRecorder()
	inspector.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil {
		t.Fatalf("GET %s answered %q: %v", path, recorder.Body, err)
	}
	return recorder.Code, recorder.Header(), body
}

func TestInspector_servesTheInventory(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{MaxMicroversion: "1.82"}
	a := newAPI(t, fake)
	machine := fakeironic.SampleInventory(3)
	uuid := fake.DiscoverByInspector(machine)

	node := a.state(uuid, "enroll")
	got := fmt.Sprint(node["name"], node["driver_info"], node["properties"])
	if got != "<nil> map[ipmi_address:198.18.0.3] map[cpu_arch:x86_64 cpus:32 local_gb:893 memory_mb:131072]" {
		t.Errorf("node = %s", got)
	}
	if got := a.ports(uuid); fmt.Sprint(got) != "[52:55:00:00:03:00*]" {
		t.Errorf("ports = %v", got)
	}
	a.refused(http.StatusNotFound, "could not be found", http.MethodGet, "/v1/nodes/"+uuid+"/inventory", nil)

	status, header, body := inspect(t, &fakeironic.Inspector{Server: fake}, "/v1/introspection/"+uuid+"/data")
	if status != http.StatusOK || header.Get("X-OpenStack-Ironic-Inspector-API-Maximum-Version") != "1.18" {
		t.Fatalf("status = %d, header = %v", status, header)
	}
	if !reflect.DeepEqual(body["inventory"], machine["inventory"]) {
		t.Errorf("inventory = %v, want what was posted", body["inventory"])
	}
	want := map[string]any{
		"auto_discovered": true, "macs": []any{"52:55:00:00:03:00"}, "ipmi_address": "198.18.0.3", "ipmi_v6address": nil, "cpus": 32.0,
		"all_interfaces": map[string]any{
			"eno1": map[string]any{"ip": "198.19.0.3", "mac": "52:55:00:00:03:00", "client_id": nil, "pxe": true},
			"eno2": map[string]any{"ip": nil, "mac": "52:55:00:00:03:01", "client_id": nil, "pxe": false},
		},
		"interfaces": map[string]any{"eno1": map[string]any{"ip": "198.19.0.3", "mac": "52:55:00:00:03:00", "client_id": nil, "pxe": true}},
	}
	for key, value := range want {
		if !reflect.DeepEqual(body[key], value) {
			t.Errorf("%s = %v, want %v", key, body[key], value)
		}
	}
}

func TestInspector_refusesKnownMachines(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{MaxMicroversion: "1.82"}
	fake.DiscoverByInspector(fakeironic.SampleInventory(1))
	sameBMC := with(fakeironic.SampleInventory(2), func(inventory map[string]any) { inventory["bmc_address"] = "198.18.0.1" })
	for name, machine := range map[string]map[string]any{
		"the same machine":         fakeironic.SampleInventory(1),
		"another one with its BMC": sameBMC,
	} {
		if got := fake.DiscoverByInspector(machine); got != "" {
			t.Errorf("%s became node %s", name, got)
		}
	}
}

func TestInspector_explainsMissingData(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{MaxMicroversion: "1.82"}
	uuid := fake.DiscoverByInspector(fakeironic.SampleInventory(1))
	data := "/v1/introspection/" + uuid + "/data"
	manual := newAPI(t, fake).node("manual", nil)
	for _, test := range []struct {
		inspector *fakeironic.Inspector
		path      string
		status    int
		text      string
	}{
		{
			&fakeironic.Inspector{Server: fake, StoresNothing: true}, data, 404,
			"Inspector is not configured to store data. Set the [processing]store_data configuration option to change this.",
		},
		{&fakeironic.Inspector{Server: fake}, "/v1/introspection/manual/data", 404, "Introspection data not found for node " + manual +
			", processed=True"},
		{&fakeironic.Inspector{Server: fake}, "/v1/introspection/nobody/data", 404, "Node nobody was not found in Ironic"},
		{&fakeironic.Inspector{Server: &fakeironic.Server{Username: "admin", Password: "secret"}}, data, 401, "Authorization required"},
	} {
		status, _, body := inspect(t, test.inspector, test.path)
		failure, _ := body["error"].(map[string]any)
		if status != test.status || failure["message"] != test.text {
			t.Errorf("GET %s = %d %v, want %d %q", test.path, status, body, test.status, test.text)
		}
	}
	if status, _, body := inspect(t, &fakeironic.Inspector{Server: fake}, "/"); status != http.StatusOK || body["versions"] == nil {
		t.Errorf("GET / = %d %v, want the versions", status, body)
	}
}
