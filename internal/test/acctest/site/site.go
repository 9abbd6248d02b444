// Package site has the site of an acceptance test: a fake Ironic or a real one, with names that are unique to the test, its nodes, and
// OneView. Only tests import it. Tests below Terraform use internal/test/sitetest.
package site

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// Variables that point the tests at a real Ironic. Tests named TestAcc… run there too. Tests named TestFake… need the fake, for
// example because it injects faults.
const (
	endpointVariable          = "METAL_ACC_ENDPOINT"
	slowEndpointVariable      = "METAL_ACC_SLOW_ENDPOINT"      // an Ironic that takes seconds to deploy and clean
	discoveryEndpointVariable = "METAL_ACC_DISCOVERY_ENDPOINT" // an Ironic with discovery
	bmcEndpointVariable       = "METAL_ACC_BMC_ENDPOINT"       // an Ironic for machines with simulated BMCs
)

// Site is an Ironic with names that are unique to a test.
type Site struct {
	Endpoint string
	// Fake is the fake; nil if the Ironic is real.
	Fake *fakeironic.Server

	t          testing.TB
	token      string // of Keystone
	unique     string
	discovered []string // UUIDs of the nodes that Discover created
}

// Start returns an Ironic for a test: the real one if METAL_ACC_ENDPOINT is set, else the given fake (nil: an empty one). The
// test fails if nodes or allocations with its names are left on the real Ironic at the end.
func Start(t testing.TB, fake *fakeironic.Server) *Site {
	t.Helper()
	return start(t, os.Getenv(endpointVariable), fake)
}

// StartSlow is Start for tests that need an operation in progress: with a real Ironic that takes seconds to deploy and clean, or with
// the fake, whose machines the test holds.
func StartSlow(t testing.TB) *Site {
	t.Helper()
	return StartSlowWith(t, &fakeironic.Server{})
}

// StartSlowWith is StartSlow with the given fake.
func StartSlowWith(t testing.TB, fake *fakeironic.Server) *Site {
	t.Helper()
	if os.Getenv(endpointVariable) != "" && os.Getenv(slowEndpointVariable) == "" {
		t.Fatalf("%s is set, so %s must be too", endpointVariable, slowEndpointVariable)
	}
	return start(t, os.Getenv(slowEndpointVariable), fake)
}

// Hold keeps machines of the fake that are in one of these transient states, or enter one, in that state until release is called. A real
// Ironic holds nothing: the steps of the one that StartSlow chooses take seconds.
func (s *Site) Hold(states ...string) (release func()) {
	if s.Fake == nil {
		return func() {}
	}
	return s.Fake.Hold(states...)
}

// StartMachines is Start with an Ironic of tools/test-metal. It skips the test without one.
func StartMachines(t testing.TB, endpoint string) *Site {
	t.Helper()
	if endpoint == "" {
		t.Skip("machines boot in tools/test-metal only")
	}
	return start(t, endpoint, nil)
}

// StartAt is Start with a real Ironic that accepts a token of Keystone.
func StartAt(t testing.TB, endpoint, token string) *Site {
	t.Helper()
	s := start(t, endpoint, nil)
	s.token = token
	return s
}

// StartFake is Start for tests that need the fake.
func StartFake(t testing.TB, fake *fakeironic.Server) *Site {
	t.Helper()
	return start(t, "", fake)
}

func start(t testing.TB, endpoint string, fake *fakeironic.Server) *Site {
	t.Helper()
	SkipUnlessAsked(t)
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	s := &Site{Endpoint: endpoint, t: t, unique: fmt.Sprintf("%x", id)}
	if endpoint == "" {
		if fake == nil {
			fake = &fakeironic.Server{}
		}
		server := httptest.NewServer(fake)
		t.Cleanup(server.Close)
		s.Fake, s.Endpoint = fake, server.URL
	} else {
		s.record(t)
	}
	t.Cleanup(s.sweep)
	return s
}

// SkipUnlessAsked skips a test unless TF_ACC is set.
func SkipUnlessAsked(t testing.TB) {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
}

// Provider returns a provider block for the site, with further settings.
func (s *Site) Provider(settings ...string) string {
	return fmt.Sprintf("provider \"metal\" {\n  endpoint = %q\n  auth_type = \"none\"\n  poll_interval = \"200ms\"\n  %s\n}\n", s.Endpoint,
		strings.Join(settings, "\n  "))
}

// Until polls done until it returns true, and fails the test after three minutes. what describes the condition.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !InTime(done) {
		t.Fatalf("waited three minutes for %s", what)
	}
}

// InTime polls done until it returns true. It returns false after three minutes: a busy machine is slow, and no test waits that long for
// what happens. It polls less and less often, so that a real Ironic, which answers one request after the other, does not spend its time on
// polls.
func InTime(done func() bool) bool {
	pause, end := 50*time.Millisecond, time.Now().Add(3*time.Minute)
	for !done() {
		if time.Now().After(end) {
			return false
		}
		<-time.After(pause)
		pause = min(2*pause, 400*time.Millisecond)
	}
	return true
}

// Name returns a name that is unique to the test.
func (s *Site) Name(base string) string { return base + "-" + s.unique }

// Class returns a resource class that is unique to the test.
func (s *Site) Class() string { return "class-" + s.unique }

// Trait returns a custom trait that is unique to the test.
func (s *Site) Trait(base string) string { return "CUSTOM_" + base + "_" + strings.ToUpper(s.unique) }

// MAC returns the nth MAC address of the test; n is at most 255.
func (s *Site) MAC(n int) string {
	return fmt.Sprintf("52:%s:%s:%s:%s:%02x", s.unique[:2], s.unique[2:4], s.unique[4:6], s.unique[6:8], n)
}

// Left lists the objects with the test's names in Ironic: nodes, allocations, and what belongs to no machine.
func (s *Site) Left() []string {
	var left []string
	for _, kind := range []string{"nodes", "allocations"} {
		items, _ := s.Must(http.MethodGet, kind, nil)[kind].([]any)
		for _, item := range items {
			object, _ := item.(map[string]any)
			if name, _ := object["name"].(string); strings.Contains(name, s.unique) {
				left = append(left, kind+"/"+name)
			}
		}
	}
	for _, kind := range []string{"deploy_templates", "runbooks", "inspection_rules"} {
		status, answer := s.CallAt("latest", http.MethodGet, kind, nil)
		if status != http.StatusOK {
			continue // this Ironic has none
		}
		items, _ := answer[kind].([]any)
		for _, item := range items {
			object, _ := item.(map[string]any)
			if strings.Contains(strings.ToLower(Text(object["name"])+Text(object["description"])), s.unique) {
				left = append(left, kind+"/"+Text(object["uuid"]))
			}
		}
	}
	return left
}

// sweep removes what the test left on a real Ironic, and fails a test that passed but left something.
func (s *Site) sweep() {
	if s.Fake != nil {
		return // ends with the test
	}
	for _, uuid := range s.discovered { // they may have no name yet
		s.Call(http.MethodPut, "nodes/"+uuid+"/maintenance", map[string]any{})
		s.Call(http.MethodDelete, "nodes/"+uuid, nil)
	}
	left := s.Left()
	if len(left) > 0 && !s.t.Failed() {
		s.t.Errorf("left in Ironic: %v", left)
	}
	for _, object := range left {
		if strings.HasPrefix(object, "nodes/") {
			s.Call(http.MethodPut, object+"/maintenance", map[string]any{})
		}
		s.CallAt("latest", http.MethodDelete, object, nil)
	}
}

// StartWithBMCs is Start with an Ironic whose machines have BMCs of acctest/bmc. Ironic waits for BMCs that do not answer, so other tests
// use another one.
func StartWithBMCs(t testing.TB, fake *fakeironic.Server) *Site {
	t.Helper()
	if os.Getenv(endpointVariable) != "" && os.Getenv(bmcEndpointVariable) == "" {
		t.Fatalf("%s is set, so %s must be too; for an Ironic on another machine: -skip ^TestAccBMC", endpointVariable, bmcEndpointVariable)
	}
	return start(t, os.Getenv(bmcEndpointVariable), fake)
}
