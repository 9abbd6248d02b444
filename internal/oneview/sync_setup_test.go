package oneview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// hour is how long transient states of nodes last in most tests: long enough to be seen.
const hour = time.Hour

// poolSite is a site whose hardware Ironic and OneView share: node-000 is the first blade, and so on.
type poolSite struct {
	ironic   *fakeironic.Server
	oneview  *fakeoneview.Server
	hardware []string // URIs, by number of the node
	template string
	limit    ironic.Limit
}

// inPoolTime runs a test in which hours pass in no time.
func inPoolTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(hour) }() // whoever waits for a look at Ironic needs an interval to see that it is over
		test(t)
	})
}

// newPoolSite makes a site of n available nodes with dynamic allocation, free and off.
func newPoolSite(t *testing.T, n int) *poolSite {
	t.Helper()
	s := &poolSite{ironic: &fakeironic.Server{StepTime: hour}, oneview: &fakeoneview.Server{}}
	fleet := s.oneview.AddBlades(n)
	s.hardware, s.template = fleet.Hardware, fleet.TemplateURI
	s.ironic.AddFleet(n, "baremetal")
	for i, uri := range fleet.Hardware {
		s.ironic.Set(nodeName(i), "driver_info", map[string]any{keyHardware: uri, keyDynamic: true})
		s.ironic.Set(nodeName(i), "properties", map[string]any{"capabilities": fmt.Sprintf("boot_mode:uefi,%s:%s,%s:%s,%s:%s",
			capabilityHardwareType, fleet.TypeURI, capabilityTemplate, fleet.TemplateURI, capabilityGroup, fleet.GroupURI)})
	}
	for _, uri := range fleet.Hardware {
		s.addPort(t, uri)
	}
	t.Cleanup(func() {
		for _, harm := range s.oneview.Harm() {
			t.Errorf("harm was done to another user: %s", harm)
		}
	})
	return s
}

// addPort gives the node of a blade a port with an address of the blade, which is how they are known to belong together.
func (s *poolSite) addPort(t *testing.T, hardwareURI string) {
	t.Helper()
	id := s.node(t, nodeName(slices.Index(s.hardware, hardwareURI))).UUID
	body, err := json.Marshal(map[string]any{"node_uuid": id, "address": strings.ToLower(s.oneview.HardwareAt(hardwareURI).MACs[0])})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://ironic.test/v1/ports", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.ironic.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("POST ports: %v %v", resp, err)
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%03d", i) }

// node is a node as Ironic has it.
func (s *poolSite) node(t *testing.T, ref string) fakeironic.Node {
	t.Helper()
	node, ok := s.ironic.Node(ref)
	if !ok {
		t.Fatalf("there is no node %s", ref)
	}
	return node
}

// attribute is one attribute of a node as Ironic shows it.
func (s *poolSite) read(t *testing.T, ref string) *ironic.Node {
	t.Helper()
	node, err := s.pool(t).Ironic.Node(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// pool is a new process at work on the site.
func (s *poolSite) pool(t *testing.T) *Pool { return s.poolThrough(t, s.ironic, s.oneview) }

// poolThrough is a process that reaches Ironic and the appliance through given transports.
func (s *poolSite) poolThrough(t *testing.T, toIronic, toOneView http.RoundTripper) *Pool {
	t.Helper()
	client, err := New(Config{Endpoint: "https://oneview.test", Username: "ironic", Password: "correct horse", Transport: toOneView})
	if err != nil {
		t.Fatal(err)
	}
	return &Pool{OneView: client, Ironic: ironic.New(ironic.Config{
		Endpoint: "http://ironic.test", Auth: ironic.AuthNone, Transport: toIronic, Limit: s.limit,
	})}
}

func hosts(most int) ironic.Limit {
	limit := ironic.Limit{Coordination: ironic.CoordinationIronic}
	limit.Max, limit.StuckAfter = most, 3*hour
	return limit
}

// maintain puts a node into maintenance of a kind, as it is when it has its state already.
func (s *poolSite) maintain(t *testing.T, ref string, kind Maintenance) {
	t.Helper()
	switch kind {
	case MaintenanceNone:
	case MaintenanceLifted:
		s.ironic.Set(ref, "extra", map[string]any{keyReturning: returningMark(s.read(t, ref))})
	case MaintenanceOurs:
		s.ironic.Set(ref, "maintenance", true)
		s.ironic.Set(ref, "maintenance_reason", ReasonInUse)
	case MaintenanceFault:
		s.ironic.Set(ref, "maintenance", true)
		s.ironic.Set(ref, "maintenance_reason", "the step erase_devices failed")
		s.ironic.Set(ref, "fault", ironic.FaultClean)
	case MaintenanceForeign:
		s.ironic.Set(ref, "maintenance", true)
		s.ironic.Set(ref, "maintenance_reason", "disk swap")
	}
}

// give gives a node's hardware a profile of Ironic's own, as an earlier deployment has left it, and returns its URI.
func (s *poolSite) give(t *testing.T, i int, name string) string {
	t.Helper()
	uri := s.oneview.AddProfile(fakeoneview.NewProfile{Name: name, HardwareURI: s.hardware[i], TemplateURI: s.template, Unlinked: true})
	s.driverInfo(t, i, keyApplied, uri)
	return uri
}

// driverInfo changes one key of driver_info in the database; nil removes it.
func (s *poolSite) driverInfo(t *testing.T, i int, key string, value any) {
	t.Helper()
	info := s.read(t, nodeName(i)).DriverInfo
	if info[key] = value; value == nil {
		delete(info, key)
	}
	s.ironic.Set(nodeName(i), "driver_info", info)
}

// told collects findings.
type told struct {
	mu  sync.Mutex
	all []Finding
}

func (c *told) hear(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, f)
}

// lines are the findings of an outcome, sorted; all if it is empty.
func (c *told) lines(outcome Outcome) []string {
	var lines []string
	for _, f := range c.all {
		if outcome == "" || f.Outcome == outcome {
			line := f.NodeName + ": " + f.Text
			if f.Err != nil {
				line += ": " + f.Err.Error()
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// sync makes a pass in a process of its own and returns what it told.
func (s *poolSite) sync(t *testing.T, change ...func(*SyncOptions)) (*told, SyncSummary) {
	t.Helper()
	heard := &told{}
	options := SyncOptions{Report: heard.hear}
	for _, c := range change {
		c(&options)
	}
	summary, err := s.pool(t).Sync(t.Context(), options)
	if err != nil {
		t.Fatalf("Sync: %v", err)
	}
	return heard, summary
}

func dryRun(o *SyncOptions) { o.DryRun = true }

// writes are the requests to Ironic that change something, as "METHOD path body", for one node or for all.
func (s *poolSite) writes(id string) []string {
	var all []string
	for _, r := range s.ironic.Requests() {
		if r.Method != http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes/"+id) {
			all = append(all, r.Method+" "+strings.TrimPrefix(r.Path, "/v1/nodes/"+id)+" "+r.Body)
		}
	}
	return all
}

// appliance are the requests to the appliance that change something but its sessions.
func (s *poolSite) appliance() []string {
	var all []string
	for _, r := range s.oneview.Requests() {
		if r.Method != http.MethodGet && !strings.Contains(r.Path, "login-sessions") {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// forget forgets all requests so far.
func (s *poolSite) forget() {
	s.ironic.ResetRequests()
	s.oneview.ResetRequests()
}

// wantNode fails the test unless a node is in a state, with a maintenance reason; "" is not in maintenance.
func (s *poolSite) wantNode(t *testing.T, i int, state, reason string) {
	t.Helper()
	node := s.node(t, nodeName(i))
	if node.ProvisionState != state || node.Maintenance != (reason != "") || node.MaintenanceReason != reason {
		t.Errorf("node %d is %s, maintenance %t %q, want %s with %q", i, node.ProvisionState, node.Maintenance, node.MaintenanceReason, state, reason)
	}
}

// errKilled is what a process sees of its own death.
var errKilled = errors.New("killed")

// mortal is the transport of a process that is killed at its nth request: before it leaves, or after it took effect.
type mortal struct {
	mu    *sync.Mutex
	left  *int
	late  bool // the request arrives, and its answer does not
	next  http.RoundTripper
	death context.CancelFunc
}

// RoundTrip sends the request unless the process is dead.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	*m.left--
	left := *m.left
	m.mu.Unlock()
	if left < 0 || (left == 0 && !m.late) {
		m.death()
		return nil, errKilled
	}
	resp, err := m.next.RoundTrip(r)
	if left == 0 {
		m.death()
		if err == nil {
			_ = resp.Body.Close()
		}
		return nil, errKilled
	}
	return resp, err
}

// untilKilled runs a process that dies at its nth request, and reports whether it died.
func (s *poolSite) untilKilled(t *testing.T, n int, late bool, run func(context.Context, *Pool)) (died bool) {
	t.Helper()
	ctx, death := context.WithCancel(t.Context())
	defer death()
	left, mu := n, &sync.Mutex{}
	through := func(next http.RoundTripper) http.RoundTripper {
		return &mortal{mu: mu, left: &left, late: late, next: next, death: death}
	}
	run(ctx, s.poolThrough(t, through(s.ironic), through(s.oneview)))
	return left <= 0
}
