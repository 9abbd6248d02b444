package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestVersion_isNegotiatedByHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		max, asked string
		status     int
		answered   string
	}{
		{"", "", http.StatusOK, "1.1"},
		{"", "latest", http.StatusOK, "1.115"},
		{"1.82", "latest", http.StatusOK, "1.82"},
		{"1.82", "1.60", http.StatusOK, "1.60"},
		{"1.82", "1.83", http.StatusNotAcceptable, ""},
		{"", "1.999", http.StatusNotAcceptable, ""},
		{"", "1.0", http.StatusNotAcceptable, ""},
		{"", "2.0", http.StatusNotAcceptable, ""},
		{"", "foo", http.StatusNotAcceptable, ""},
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: tt.max}).at(tt.asked)
		got := a.do(http.MethodGet, "/v1/nodes", nil)
		if answered := got.header.Get("X-OpenStack-Ironic-API-Version"); got.status != tt.status || answered != tt.answered {
			t.Errorf("max %q, asked %q: %d with version %q, want %d with %q", tt.max, tt.asked, got.status, answered,
				tt.status, tt.answered)
		}
	}
}

func TestVersion_refusalHasTheRange(t *testing.T) {
	t.Parallel()
	got := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"}).at("1.115").do(http.MethodGet, "/v1/nodes", nil)
	low, high := got.header.Get("X-OpenStack-Ironic-API-Minimum-Version"), got.header.Get("X-OpenStack-Ironic-API-Maximum-Version")
	if low != "1.1" || high != "1.82" {
		t.Errorf("range is %s to %s, want 1.1 to 1.82", low, high)
	}
}

func TestVersion_rootHasTheHighest(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.96"})
	for _, path := range []string{"/v1", "/v1/"} {
		version, isObject := a.must(http.StatusOK, http.MethodGet, path, nil)["version"].(map[string]any)
		if !isObject || version["version"] != "1.96" || version["min_version"] != "1.1" {
			t.Errorf("GET %s: version = %v, want 1.1 to 1.96", path, version)
		}
	}
	a.must(http.StatusOK, http.MethodGet, "/", nil)
}

func TestVersion_hidesNewerFields(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	for _, tt := range []struct {
		field, without, with string
	}{
		{"name", "1.4", "1.5"},
		{"resource_class", "1.20", "1.21"},
		{"deploy_interface", "1.30", "1.31"},
		{"traits", "1.36", "1.37"},
		{"owner", "1.49", "1.50"},
		{"allocation_uuid", "1.51", "1.52"},
		{"lessee", "1.64", "1.65"},
		{"boot_mode", "1.74", "1.75"},
		{"shard", "1.81", "1.82"},
		{"parent_node", "1.82", "1.83"},
		{"firmware_interface", "1.85", "1.86"},
		{"health", "1.108", "1.109"},
	} {
		uuid := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1", nil)["uuid"]
		show := func(version string) bool {
			_, shown := a.at(version).must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid.(string), nil)[tt.field]
			return shown
		}
		if show(tt.without) || !show(tt.with) {
			t.Errorf("%s is shown at %s: %v, at %s: %v; want only at the second", tt.field, tt.without, show(tt.without),
				tt.with, show(tt.with))
		}
	}
}

func TestVersion_nodeCreatedBefore11IsAvailable(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := uuidOf(t, a.at("1.10").must(http.StatusCreated, http.MethodPost, "/v1/nodes", map[string]any{"driver": "fake-hardware"}))
	a.state(uuid, "available")
}

func TestServer_onlyVersionDiscoveryNeedsNoCredentials(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Username: "admin", Password: "secret"})
	for _, path := range []string{"/", "/v1", "/v1/"} {
		a.must(http.StatusOK, http.MethodGet, path, nil)
	}
	for _, tt := range []struct {
		header string
		status int
		text   string
	}{
		{"", http.StatusUnauthorized, "Authorization required"},
		{"Basic YWRtaW46d3Jvbmc=", http.StatusUnauthorized, "Incorrect username or password"},
		{"Bearer abc", http.StatusBadRequest, "Could not parse Authorization header"},
		{"Basic YWRtaW46c2VjcmV0", http.StatusOK, `"nodes"`},
	} {
		request := a.request(http.MethodGet, "/v1/nodes", nil)
		if tt.header != "" {
			request.Header.Set("Authorization", tt.header)
		}
		if got := a.send(request); got.status != tt.status || !strings.Contains(got.text, tt.text) {
			t.Errorf("Authorization %q = %d %s, want %d with %q", tt.header, got.status, got.text, tt.status, tt.text)
		}
	}
}
