package provider_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// driftingHost is the configuration of a host with a value for each attribute whose drift a test can cause.
func driftingHost() map[string]any {
	config := oneHost()
	maps.Copy(config, map[string]any{
		"owner": "team-a", "lessee": "team-b", "shard": "s1", "automated_clean": true, "retired": false, "maintenance": false,
		"capabilities": map[string]any{"boot_mode": "uefi"}, "root_device": map[string]any{"serial": "1"},
		"hardware_interfaces": map[string]any{"boot": "fake"},
	})
	return config
}

// refreshedHost is a host whose next refresh is left out if nothing changes: it was refreshed twice, the second time at once.
func (s *session) refreshedHost(config map[string]any) *instance {
	s.Helper()
	host := s.appliedHost(config)
	s.configure(nil) // another run
	again, atOnce := s.refresh(host)
	if !atOnce {
		s.Fatal("the second refresh of a host without changes asks the framework")
	}
	s.configure(nil)
	return again
}

func TestUnchanged_refreshReturnsCurrentState(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := driftingHost()
	host := s.refreshedHost(config)
	if !s.plan("metal_host", config, host) {
		t.Error("after such a refresh, the host is not planned at once")
	}
	if _, atOnce := s.refresh(host); !atOnce {
		t.Error("the third refresh asks the framework")
	}
}

// Terraform before 1.12 passes no identity. When a newer one takes over, the refresh must return one.
func TestUnchanged_CLIWithoutIdentities(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := driftingHost()
	host := s.appliedHost(config)
	for round := range 3 {
		host.identity = nil
		after, atOnce := s.refresh(host)
		if !atOnce {
			t.Errorf("refresh %d asks the framework", round)
		}
		if after.identity == nil || !bytes.Contains(after.identity.IdentityData.MsgPack, []byte(s.text(host, "id"))) {
			t.Errorf("refresh %d returns the identity %v", round, after.identity)
		}
		after.identity = nil
		if !s.plan("metal_host", config, after) {
			t.Errorf("after refresh %d the host is not planned at once", round)
		}
		host = after
	}
}

func TestUnchanged_refreshFindsDrift(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *session, node string) int{
		"name":           patched("replace", "/name", "other"),
		"driver":         sent(http.MethodPatch, "?reset_interfaces=true", patch("replace", "/driver", "redfish")),
		"driver_info":    patched("replace", "/driver_info/deploy_kernel", "http://images.example.com/other"),
		"resource_class": patched("replace", "/resource_class", "other"),
		"traits":         sent(http.MethodDelete, "/traits/CUSTOM_A", nil),
		"capabilities":   patched("replace", "/properties/capabilities", "boot_mode:bios"),
		"properties":     patched("replace", "/properties/cpus", "8"),
		"a lost property": func(s *session, node string) int {
			return s.call(http.MethodPatch, "/v1/nodes/"+node, []map[string]any{{"op": "remove", "path": "/properties/cpus"}})
		},
		"root_device":         patched("replace", "/properties/root_device", map[string]any{"serial": "2"}),
		"hardware_interfaces": patched("replace", "/boot_interface", "ipxe"),
		"extra":               patched("replace", "/extra/team", "db"),
		"description":         patched("replace", "/description", "other"),
		"owner":               patched("replace", "/owner", "other"),
		"lessee":              patched("replace", "/lessee", "other"),
		"shard":               patched("replace", "/shard", "s2"),
		"automated_clean":     patched("replace", "/automated_clean", false),
		"retired":             patched("replace", "/retired", true),
		"retired_reason": sent(http.MethodPatch, "",
			append(patch("replace", "/retired", true), patch("add", "/retired_reason", "old")...)),
		"maintenance":     sent(http.MethodPut, "/maintenance", map[string]any{"reason": "broken"}),
		"provision_state": sent(http.MethodPut, "/states/provision", map[string]any{"target": "manage"}),
		"instance_id":     patched("add", "/instance_uuid", "5e9d1a0c-3a51-4a2c-9f0b-0b8f6f0a7b11"),
		"a port":          onPort(http.MethodPatch, patch("replace", "/pxe_enabled", true)),
		"a lost port":     onPort(http.MethodDelete, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, nil)
			host := s.refreshedHost(driftingHost())
			if status := change(s, s.text(host, "id")); status >= http.StatusBadRequest {
				t.Fatalf("Ironic refuses the drift: %d", status)
			}
			after, atOnce := s.refresh(host)
			if atOnce {
				t.Fatal("the refresh does not ask the framework")
			}
			differences, err := s.of("metal_host", host.state).Diff(s.of("metal_host", after.state))
			if err != nil || len(differences) == 0 {
				t.Errorf("the refresh shows no difference: %v", err)
			}
			s.configure(nil)
			if again, _ := s.refresh(after); again == nil {
				t.Error("the host has vanished from the state")
			}
		})
	}
}

// patched is a drift by one operation of a JSON patch.
func patched(op, path string, value any) func(*session, string) int {
	return sent(http.MethodPatch, "", patch(op, path, value))
}

// sent is a drift by one request about the node.
func sent(method, below string, body any) func(*session, string) int {
	return func(s *session, node string) int { return s.call(method, "/v1/nodes/"+node+below, body) }
}

// onPort is a drift of the second port, which does not boot.
func onPort(method string, body any) func(*session, string) int {
	return func(s *session, _ string) int { return s.call(method, "/v1/ports/"+s.port("52:54:00:00:00:02"), body) }
}

// If other clients add to the node what the host does not manage, the refresh does not ask the framework.
func TestUnchanged_refreshIgnoresWhatIsNotManaged(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host := s.refreshedHost(driftingHost())
	node := s.text(host, "id")
	for path, value := range map[string]any{"/properties/vendor": "ACME", "/extra/rack": "7", "/driver_info/note": "x"} {
		if status := patched("add", path, value)(s, node); status >= http.StatusBadRequest {
			t.Fatalf("Ironic refuses %s: %d", path, status)
		}
	}
	after, atOnce := s.refresh(host)
	if !atOnce || !bytes.Equal(after.private, host.private) {
		t.Errorf("the refresh asks the framework, or changes private state %s to %s", host.private, after.private)
	}
}

// port returns the UUID of the port with a MAC address.
func (s *session) port(address string) string {
	s.Helper()
	var found struct{ Ports []struct{ UUID string } }
	s.ask("/v1/ports?address="+address, &found)
	if len(found.Ports) != 1 {
		s.Fatalf("%d ports have the MAC address %s", len(found.Ports), address)
	}
	return found.Ports[0].UUID
}

// ask makes a GET request to the fake Ironic, as another user.
func (s *session) ask(path string, answer any) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		s.Fatal(err)
	}
}

// An inspection by others changes no attribute of this host, but private state.
func TestUnchanged_refreshNotesInspection(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := driftingHost()
	config["target_state"] = "manageable"
	host := s.refreshedHost(config)
	node := "/v1/nodes/" + s.text(host, "id")
	if status := s.call(http.MethodPut, node+"/states/provision", map[string]any{"target": "inspect"}); status >= http.StatusBadRequest {
		t.Fatalf("Ironic refuses to inspect: %d", status)
	}
	var now struct {
		State string `json:"provision_state"`
	}
	for now.State != "manageable" {
		s.ask(node, &now)
	}
	after, atOnce := s.refresh(host)
	type noted struct {
		Inspected bool `json:"inspected"`
	}
	if atOnce || !framework.LoadPrivate[noted](t.Context(), framework.Private(after.private)).Inspected {
		t.Errorf("the refresh does not note the inspection: %s", after.private)
	}
}

// A refresh is left out only under the conditions of the last one.
func TestUnchanged_refreshDependsOnConditions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *session, host *instance) *instance{
		"the version of the provider's API": func(s *session, host *instance) *instance {
			s.configure(block{"microversion": "1.80"})
			return host
		},
		"the version of the provider": func(s *session, host *instance) *instance {
			s.server = provider.NewServer("another")
			s.configure(nil)
			return host
		},
		"private state": func(_ *session, host *instance) *instance {
			return &instance{kind: host.kind, state: host.state, identity: host.identity}
		},
		"the state": func(s *session, host *instance) *instance {
			values := fields(s.of(host.kind, host.state))
			values["description"] = s.value(values["description"].Type(), "edited")
			edited := s.dynamic(tftypes.NewValue(s.kind(host.kind), values))
			return &instance{kind: host.kind, state: edited, private: host.private, identity: host.identity}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, nil)
			host := change(s, s.refreshedHost(driftingHost()))
			if _, atOnce := s.refresh(host); atOnce {
				t.Error("the refresh does not ask the framework")
			}
		})
	}
}

// The state that an update leaves is as a refresh would, and says so.
func TestUnchanged_refreshAfterUpdateIsAtOnce(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	config := driftingHost()
	host := s.refreshedHost(config)
	config["description"] = "other"
	updated, said := s.apply("metal_host", config, host)
	if failed(said) || updated == host {
		t.Fatalf("the update is not applied: %s", describe(said))
	}
	if _, atOnce := s.refresh(updated); !atOnce {
		t.Error("the refresh after an update asks the framework")
	}
}

func TestUnchanged_refreshFindsNodeGone(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host := s.refreshedHost(driftingHost())
	if status := s.call(http.MethodDelete, "/v1/nodes/"+s.text(host, "id"), nil); status >= http.StatusBadRequest {
		t.Fatalf("Ironic refuses to delete the node: %d", status)
	}
	left, atOnce := s.refresh(host)
	if left == nil || atOnce {
		t.Fatalf("a host whose node is missing: %v, at once: %v; want that it stays in state, after a question to Ironic", left, atOnce)
	}
	if again, _ := s.refresh(left); again == nil || string(again.private) != string(left.private) {
		t.Error("another refresh of it shows drift")
	}
}

// An error of Ironic is an error of the refresh, and the request is not sent once more.
func TestUnchanged_refreshReportsError(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host := s.refreshedHost(driftingHost())
	ironic, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/nodes") {
			reads.Add(1)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		httputil.NewSingleHostReverseProxy(ironic).ServeHTTP(w, r)
	}))
	t.Cleanup(refusing.Close)
	s.configure(block{"endpoint": refusing.URL})
	resp, err := s.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: host.kind, CurrentState: host.state,
		Private: host.private, CurrentIdentity: host.identity,
	})
	if err != nil || !failed(resp.Diagnostics) {
		t.Fatalf("the refresh does not fail: %v %s", err, describe(resp.Diagnostics))
	}
	if said := describe(resp.Diagnostics); !strings.Contains(said, "r1") {
		t.Errorf("the error does not name the host: %s", said)
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("the node was asked for %d times, want once", n)
	}
}
