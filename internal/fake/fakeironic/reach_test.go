package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// A BMC that does not answer leaves the node in enroll, with the reason in last_error and in the history, as real Ironics do. The request
// is accepted all the same.
func TestReach_verification(t *testing.T) {
	t.Parallel()
	for _, version := range bothIronics {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version, Answers: func(bmc string) bool {
			return bmc == "192.0.2.98" || bmc == "bmc.example.com"
		}})
		for name, tt := range map[string]struct {
			driver string
			info   map[string]any
			want   string
		}{
			"ipmi":      {"ipmi", map[string]any{"ipmi_address": "192.0.2.99"}, "Error: IPMI call failed: power status."},
			"redfish":   {"redfish", map[string]any{"redfish_address": "https://192.0.2.99:8443/redfish/v1"}, "192.0.2.99:8443/redfish/v1/"},
			"port":      {"redfish", map[string]any{"redfish_address": "https://192.0.2.98:4433"}, "[Errno 111] Connection refused"},
			"ipmi-port": {"ipmi", map[string]any{"ipmi_address": "192.0.2.98", "ipmi_port": 6230}, "IPMI call failed: power status."},
			"name":      {"redfish", map[string]any{"redfish_address": "bmc.invalid"}, "to https://bmc.invalid:443/redfish/v1/."},
			"answers":   {"redfish", map[string]any{"redfish_address": "https://192.0.2.98"}, ""},
			"ipmi-too":  {"ipmi", map[string]any{"ipmi_address": "bmc.example.com"}, ""},
		} {
			uuid := a.node(name, map[string]any{"driver": tt.driver, "driver_info": tt.info})
			a.provision(uuid, "manage")
			if tt.want == "" {
				a.state(uuid, "manageable")
				continue
			}
			node := a.state(uuid, "enroll")
			text, _ := node["last_error"].(string)
			if !strings.HasPrefix(text, "Failed to get power state for node "+uuid+". Error: ") || !strings.Contains(text, tt.want) ||
				node["target_provision_state"] != nil || node["reservation"] != nil {
				t.Errorf("%s, %s: %q, target %v", version, name, text, node["target_provision_state"])
			}
			if entries := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/history", nil), "history"); len(entries) != 1 {
				t.Errorf("%s, %s: the history is %v", version, name, entries)
			}
		}
	}
}

// A BMC that falls silent fails what calls it, and nothing else.
func TestReach_laterOperations(t *testing.T) {
	t.Parallel()
	for state, tt := range map[string]struct{ verb, after, want string }{
		"manageable":     {"provide", "clean failed", "Failed to prepare node U for cleaning: Redfish connection failed"},
		"inspect failed": {"inspect", "inspect failed", "Failed to inspect hardware. Reason: Redfish connection failed"},
		"available":      {"active", "deploy failed", "Failed to prepare to deploy: Redfish connection failed"},
		"active":         {"deleted", "error", "Failed to tear down: Redfish connection failed"},
		"clean failed":   {"manage", "manageable", ""},
	} {
		silent := false
		a := newAPI(t, &fakeironic.Server{Answers: func(string) bool { return !silent }})
		uuid := a.redfish("n1", map[string]any{"image_source": "http://img/i", "image_checksum": "00"})
		a.fake.Set(uuid, "automated_clean", true)
		a.fake.Set(uuid, "provision_state", state)
		silent = true
		a.provision(uuid, tt.verb)
		node := a.state(uuid, tt.after)
		if text, _ := node["last_error"].(string); !strings.HasPrefix(strings.ReplaceAll(text, uuid, "U"), tt.want) {
			t.Errorf("%s of a node that is %s: %q", tt.verb, state, text)
		}
		a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/"+uuid+"/states/power", map[string]any{"target": "power on"})
		node = a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid, nil)
		if text, _ := node["last_error"].(string); !strings.HasPrefix(text, "Failed to change power state to 'power on': Redfish") {
			t.Errorf("%s: power says %q", state, text)
		}
	}
}
