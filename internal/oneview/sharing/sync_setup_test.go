package sharing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// hour is the duration of transient states of nodes in most tests.
const hour = time.Hour

// poolSite is a site whose hardware Ironic and OneView share: node-000 is the first blade, and so on.
type poolSite struct {
	ironic   *fakeironic.Server
	oneview  *fakeoneview.Server
	hardware []string // URIs, by number of the node
	template string
	limit    throttle.Limit
}

// inPoolTime runs a test with a virtual clock.
func inPoolTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(hour) }() // goroutines that poll end after one interval
		test(t)
	})
}

// newPoolSite returns a site of n available nodes with dynamic allocation. Their servers are free and off.
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

// addPort gives the node of a blade a port with an address of the blade, so that node and blade match.
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

// node reads a node from Ironic.
func (s *poolSite) node(t *testing.T, ref string) fakeironic.Node {
	t.Helper()
	node, ok := s.ironic.Node(ref)
	if !ok {
		t.Fatalf("there is no node %s", ref)
	}
	return node
}

// attribute reads one attribute of a node from Ironic.
func (s *poolSite) read(t *testing.T, ref string) *ironic.Node {
	t.Helper()
	node, err := s.pool(t).Site.Ironic.Node(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// pool returns the pool of a new process.
func (s *poolSite) pool(t *testing.T) *Pool { return s.poolThrough(t, s.ironic, s.oneview) }

// poolThrough returns the pool of a new process with the given transports to Ironic and the appliance.
func (s *poolSite) poolThrough(t *testing.T, toIronic, toOneView http.RoundTripper) *Pool {
	t.Helper()
	client, err := oneview.New(oneview.Config{
		Endpoint: "https://oneview.test", Username: "ironic", Password: "correct horse",
		Transport: toOneView,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &Pool{OneView: client, Site: machine.New(machine.Config{Config: api.Config{
		Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: toIronic,
	}, Limit: s.limit})}
}

func hosts(most int) throttle.Limit {
	limit := throttle.Limit{Coordination: throttle.CoordinationIronic}
	limit.Max, limit.StuckAfter = most, 3*hour
	return limit
}

// maintain puts a node into maintenance of a kind, without a change of its state.
func (s *poolSite) maintain(t *testing.T, ref string, kind maintenance) {
	t.Helper()
	switch kind {
	case maintenanceNone:
	case maintenanceLifted:
		s.mark(t, ref, returningMark(s.read(t, ref)))
	case maintenanceOurs, maintenanceClaimed:
		if kind == maintenanceOurs {
			s.mark(t, ref, outMark(s.read(t, ref).ProvisionUpdatedAt))
		}
		s.ironic.Set(ref, "maintenance", true)
		s.ironic.Set(ref, "maintenance_reason", ReasonInUse)
	case maintenanceFault:
		s.ironic.Set(ref, "maintenance", true)
		s.ironic.Set(ref, "maintenance_reason", "the step erase_devices failed")
		s.ironic.Set(ref, "fault", machine.FaultClean)
	case maintenanceForeign:
		s.ironic.Set(ref, "maintenance", true)
		s.ironic.Set(ref, "maintenance_reason", "disk swap")
	}
}

// mark writes the mark of a pass into driver_info.
func (s *poolSite) mark(t *testing.T, ref, mark string) {
	t.Helper()
	info := s.read(t, ref).DriverInfo
	info[keyOut] = mark
	s.ironic.Set(ref, "driver_info", info)
}

// give gives a node's hardware a profile of Ironic, as of an earlier deployment, and returns its URI.
func (s *poolSite) give(t *testing.T, i int, name string) string {
	t.Helper()
	uri := s.oneview.AddProfile(fakeoneview.NewProfile{Name: name, HardwareURI: s.hardware[i], TemplateURI: s.template, Unlinked: true})
	s.driverInfo(t, i, keyApplied, uri)
	return uri
}

// driverInfo sets one key of driver_info directly in the fake Ironic; nil removes it.
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

// lines returns the findings with an outcome, sorted; all if it is empty.
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

// sync makes a pass in a new process, and returns its findings.
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

// writes returns the requests to Ironic that change something, as "METHOD path body", for one node or for all.
func (s *poolSite) writes(id string) []string {
	var all []string
	for _, r := range s.ironic.Requests() {
		if r.Method != http.MethodGet && strings.HasPrefix(r.Path, "/v1/nodes/"+id) {
			all = append(all, r.Method+" "+strings.TrimPrefix(r.Path, "/v1/nodes/"+id)+" "+r.Body)
		}
	}
	return all
}

// appliance returns the requests to the appliance that change something other than sessions.
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

// wantNode fails a test unless a node is in a state, with a maintenance reason ("": no maintenance).
func (s *poolSite) wantNode(t *testing.T, i int, state, reason string) {
	t.Helper()
	node := s.node(t, nodeName(i))
	if node.ProvisionState != state || node.Maintenance != (reason != "") || node.MaintenanceReason != reason {
		t.Errorf("node %d is %s, maintenance %t %q, want %s with %q", i, node.ProvisionState, node.Maintenance,
			node.MaintenanceReason, state, reason)
	}
}
