package main

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestProxyCountsEachRequestAndItsAnswer(t *testing.T) {
	t.Parallel()
	ironic := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/baremetal/v1/nodes/gone" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "http://"+r.Host) // as Ironic begins a link
	}))
	t.Cleanup(ironic.Close)
	p, endpoint := proxyOf(t, ironic.URL+"/baremetal")
	for _, path := range []string{"/v1/nodes", "/v1/nodes/a", "/v1/nodes/b", "/v1/nodes/gone"} {
		if link := get(t, endpoint+path); link != endpoint {
			t.Errorf("the link in the answer to %s leads to %s, want the proxy, %s", path, link, endpoint)
		}
	}
	want := counts{{shared, "GET /v1/nodes"}: 1, {own, "GET /v1/nodes/{id}"}: 2, {own, "GET /v1/nodes/{id} -> 404"}: 1}
	if got := p.take(); !maps.Equal(got, want) {
		t.Errorf("counts = %v, want %v", got, want)
	}
	if got := p.take(); len(got) != 0 {
		t.Errorf("counts after they were taken = %v, want none", got)
	}
}

func TestProxyCountsRequestsThatIronicDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p, endpoint := proxyOf(t, "http://127.0.0.1:1")
	get(t, endpoint+"/v1/nodes/a")
	if got, want := p.take(), (counts{{own, "GET /v1/nodes/{id} -> 502"}: 1}); !maps.Equal(got, want) {
		t.Errorf("counts = %v, want %v", got, want)
	}
}

func proxyOf(t *testing.T, ironic string) (p *proxy, endpoint string) {
	t.Helper()
	target, err := url.Parse(ironic)
	if err != nil {
		t.Fatal(err)
	}
	p, endpoint, stop, err := startProxy(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return p, endpoint
}

func get(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address) //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}
