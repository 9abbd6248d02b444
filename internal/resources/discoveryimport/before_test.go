package discoveryimport_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// discoveredAt posts a machine's data, and sets when Ironic has created its node and changed it last.
func discoveredAt(s *site.Site, machine int, created, changed time.Time) string {
	id := s.Fake.Discover(s.Machine(machine))
	setTimes(s, id, created, changed)
	return id
}

func setTimes(s *site.Site, id string, created, changed time.Time) {
	s.Fake.Set(id, "created_at", created.UTC().Format(time.RFC3339))
	s.Fake.Set(id, "updated_at", changed.UTC().Format(time.RFC3339))
}

// The first plan has no private state in which it could keep what it has seen.
func TestFakeDiscovery_plantimestampKeepsTheFirstPlanValid(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	before := time.Now().Add(-time.Hour)
	discoveredAt(s, 1, before, before)
	busy := discoveredAt(s, 2, time.Now().Add(-time.Minute), time.Now().Add(-time.Minute))
	s.Fake.Set(busy, "reservation", "conductor-1")
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial(""), "discovered_before = plantimestamp()"))
	w.Must("plan", "-out=plan")

	s.Fake.Set(busy, "reservation", nil) // its inspection ends
	setTimes(s, busy, time.Now().Add(-time.Minute), time.Now().Add(time.Minute))
	late := s.Fake.Discover(s.Machine(3))
	acctest.Mention(t, w.Must("apply", "plan"), "1 imported, 1 added, 1 changed, 0 destroyed")
	if got := discoveries(t, w)["rack"]; len(got.Hosts) != 1 {
		t.Errorf("in state are %v", got.names())
	}
	for _, id := range []string{busy, late} {
		setTimes(s, id, before, before)
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "2 imported, 0 added, 3 changed, 0 destroyed")
	if got, want := discoveries(t, w)["rack"].names(), 3; len(got) != want {
		t.Errorf("in state are %v", got)
	}
}

func TestFakeDiscovery_laterTimeShowsNoDifference(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	config := func(hours int) string {
		return rack(s, "rack12", bySerial(""), fmt.Sprintf("discovered_before = %q",
			noon.Add(time.Duration(hours)*time.Hour).Format(time.RFC3339)))
	}
	discoveredAt(s, 1, noon.Add(-time.Minute), noon.Add(-time.Minute))
	w := acctest.NewWorkspace(t, config(0))
	w.Must("apply", "-auto-approve")
	setTimes(s, s.Fake.Discover(withSerial(s.Machine(2), "None")), noon.Add(time.Minute), noon.Add(time.Minute)) // is pending for ever
	for hours := range 3 {
		w.Configure(config(hours))
		acctest.NoChanges(t, w)
	}
	discoveredAt(s, 3, noon.Add(time.Hour), noon.Add(time.Hour))
	w.Configure(config(2))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 2 changed, 0 destroyed")
}

// A pipeline alerts on an output with the pending machines, which must agree with the warning of the plan.
func TestFakeDiscovery_pendingHasMachinesDiscoveredAfterTheStoredTime(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	before := time.Now().Add(-time.Hour)
	discoveredAt(s, 1, before, before)
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial(""), "discovered_before = plantimestamp()")+
		"output \"pending\" {\n  value = metal_discovery_import.rack.pending\n}\n")
	w.Must("apply", "-auto-approve")

	time.Sleep(2 * time.Second) // times of Terraform and Ironic are whole seconds
	nameless := s.Fake.Discover(withSerial(s.Machine(2), "None"))
	time.Sleep(2 * time.Second)
	const reason = `serial number is "None"`
	acctest.Mention(t, w.Must("plan", "-out=plan"), "Discovered machines are pending", nameless, reason, "Changes to Outputs")
	later := s.Fake.Discover(withSerial(s.Machine(3), "N/A"))
	acctest.Mention(t, w.Must("apply", "plan"), "0 added, 0 changed, 0 destroyed")
	acctest.Mention(t, w.Must("output", "-json", "pending"), nameless)

	acctest.Mention(t, w.Must("apply", "-refresh-only", "-auto-approve"), later)
	discoveries(t, w)["rack"].wantPending(t, map[string]string{nameless: reason, later: `serial number is "N/A"`})
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
}

func TestFakeDiscovery_discoveredBeforeIsALimit(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	early := discoveredAt(s, 1, noon.Add(-time.Second), noon.Add(-time.Second))
	discoveredAt(s, 2, noon, noon)
	changed := discoveredAt(s, 3, noon.Add(-time.Hour), noon.Add(time.Hour)) // by a client
	w := acctest.NewWorkspace(t, rack(s, "rack12", bySerial(""), fmt.Sprintf("discovered_before = %q", noon.Format(time.RFC3339))))
	w.Must("apply", "-auto-approve")
	var ids []string
	for _, host := range discoveries(t, w)["rack"].Hosts {
		ids = append(ids, site.Text(host["id"]))
	}
	want := []string{early, changed}
	slices.Sort(ids)
	slices.Sort(want)
	if !slices.Equal(ids, want) {
		t.Errorf("taken are %v, want %v", ids, want)
	}
	acctest.NoChanges(t, w)
	w.Configure(rack(s, "rack12", bySerial(""), `discovered_before = "yesterday"`))
	acctest.Fails(t, w, []string{"validate"}, "must be a time such as 2026-05-01T12:00:00Z (RFC 3339)")
}
