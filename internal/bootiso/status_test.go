package bootiso

import (
	"slices"
	"testing"
	"time"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// image is the n-th image of a site, with what all machines share and what one has for itself.
func image(n, shared string, own ...string) Artifacts {
	a := Artifacts{URL: "http://images/" + n + ".iso?token=secret", Shared: map[string]string{"infra_env": shared}}
	for i := 0; i+1 < len(own); i += 2 {
		if a.Own == nil {
			a.Own = map[string]string{}
		}
		a.Own[own[i]] = own[i+1]
	}
	return a
}

// judge says what becomes of a registered machine that was booted with one thing when another is wanted.
func judge(booted, want Artifacts, change ...func(*Machine)) Status {
	record := NewRecord(booted, noon(), nil)
	m := Machine{Booted: &record, Want: want, Registered: true, Settled: true, Powered: true}
	for _, c := range change {
		c(&m)
	}
	return Judge(m)
}

func want(t *testing.T, got Status, action Action, stale bool, obsolete ...string) {
	t.Helper()
	if got.Action != action || got.Stale != stale || !slices.Equal(got.Obsolete, obsolete) {
		t.Errorf("got %+v, want %s, stale %v, obsolete %v", got, action, stale, obsolete)
	}
}

// The seven test cases of the origin, by its names; an InfraEnv is shared, an NMStateConfig is a host's own.

func TestCreateInfraEnvAddNMStateConfigsOneByOne(t *testing.T) {
	t.Parallel()
	want(t, judge(image("1", "env/1"), image("2", "env/1")), None, false) // one for another machine
	want(t, judge(image("1", "env/1"), image("2", "env/1", "nmstate", "a/1")), Reboot, true, "own.nmstate")
	want(t, judge(image("2", "env/1", "nmstate", "a/1"), image("3", "env/1", "nmstate", "a/1")), None, false)
}

func TestCreateInfraEnvAddInvalidNMStateConfigFixNMStateConfig(t *testing.T) {
	t.Parallel()
	// With an invalid configuration the machine has no network and cannot register.
	unregistered := func(m *Machine) { m.Registered = false }
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), image("2", "env/1", "nmstate", "a/2"), unregistered), Reboot, true, "image", "own.nmstate")
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), image("1", "env/1", "nmstate", "a/1"), unregistered), None, false)
}

func TestUpdateNMStateConfigForExistingAgent(t *testing.T) {
	t.Parallel()
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), image("2", "env/1", "nmstate", "a/2")), Reboot, true, "own.nmstate")
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), image("1", "env/1", "nmstate", "a/2")), Wait, true, "own.nmstate") // the image follows
}

func TestHaveMultipleNMStateConfigsForSingleAgent(t *testing.T) {
	t.Parallel()
	both := image("1", "env/1", "nmstate-a", "a/1", "nmstate-b", "b/1")
	want(t, judge(both, image("2", "env/1", "nmstate-a", "a/1", "nmstate-b", "b/1")), None, false)
	want(t, judge(both, image("2", "env/1", "nmstate-a", "a/1", "nmstate-b", "b/2")), Reboot, true, "own.nmstate-b")
	want(t, judge(image("1", "env/1", "nmstate-a", "a/1"), both), Wait, true, "own.nmstate-b")
}

func TestRemoveNMStateConfigForExistingAgent(t *testing.T) {
	t.Parallel()
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), image("2", "env/1")), Reboot, true, "own.nmstate")
}

func TestAddNMStateConfigAfterAgentIsAlreadyUp(t *testing.T) {
	t.Parallel()
	want(t, judge(image("1", "env/1"), image("1", "env/1", "nmstate", "a/1")), Wait, true, "own.nmstate")
	want(t, judge(image("1", "env/1"), image("2", "env/1", "nmstate", "a/1")), Reboot, true, "own.nmstate")
	want(t, judge(image("1", "env/1"), image("2", "env/2", "nmstate", "a/1")), Reboot, true, "own.nmstate", "shared.infra_env")
}

func TestUpdateProxyInInfraEnvWhileTheAgentIsUp(t *testing.T) {
	t.Parallel()
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), image("2", "env/2", "nmstate", "a/1")), None, true, "shared.infra_env")
	want(t, judge(image("1", "env/1"), image("2", "env/2")), None, true, "shared.infra_env")
}

// Further promises.

func TestATokenInTheURLChangesNothing(t *testing.T) {
	t.Parallel()
	other := image("1", "env/1", "nmstate", "a/1")
	other.URL = "http://user:pw@images/1.iso?token=other#x"
	unregistered := func(m *Machine) { m.Registered = false }
	want(t, judge(image("1", "env/1", "nmstate", "a/1"), other, unregistered), None, false)
	if other.Digest() != image("1", "env/1", "nmstate", "a/1").Digest() {
		t.Error("the digest depends on the token")
	}
}

func TestAVersionIsTheIdentityWhateverTheURL(t *testing.T) {
	t.Parallel()
	unregistered := func(m *Machine) { m.Registered = false }
	a := Artifacts{URL: "http://images/1.iso", Version: "sha256:1"}
	want(t, judge(a, Artifacts{URL: "http://mirror/new.iso", Version: "sha256:1"}, unregistered), None, false)
	want(t, judge(a, Artifacts{URL: "http://images/1.iso", Version: "sha256:2"}, unregistered), Reboot, true, "image")
}

func TestAnUnknownMachineIsNeverRestarted(t *testing.T) {
	t.Parallel()
	everyFact(func(f Facts) {
		for _, policy := range []Policy{"", PolicyAffected, PolicyAlways, PolicyNever} {
			got := Judge(Machine{Want: image("1", "env/1"), Policy: policy, Installing: f.Installing, Registered: f.Registered, Settled: f.Settled, Powered: true})
			want(t, got, None, false, ObsoleteUnknown)
		}
	})
}

func TestThePolicyDecides(t *testing.T) {
	t.Parallel()
	policy := func(p Policy) func(*Machine) { return func(m *Machine) { m.Policy = p } }
	before, concerned, other := image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), image("2", "env/1", "n", "a/1")
	want(t, judge(before, concerned, policy(PolicyNever)), None, true, "own.n")
	want(t, judge(before, other, policy(PolicyAlways)), Reboot, true, "image")
	want(t, judge(before, before, policy(PolicyAlways)), None, false)
	installing := func(m *Machine) { m.Policy, m.Installing = PolicyAlways, true }
	want(t, judge(before, other, installing), None, false)
	unsettled := func(m *Machine) { m.Policy, m.Settled = PolicyAlways, false }
	want(t, judge(before, other, unsettled), Wait, true, "image")
}

func TestAMachineWithoutPowerControlNeedsAPerson(t *testing.T) {
	t.Parallel()
	unpowered := func(m *Machine) { m.Powered = false }
	want(t, judge(image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), unpowered), Manual, true, "own.n")
	want(t, judge(image("1", "env/1"), image("2", "env/2"), unpowered), None, true, "shared.infra_env")
}

func TestTheLoopGuardCountsRebootsWithOneImageInADay(t *testing.T) {
	t.Parallel()
	a := image("1", "env/1")
	record := NewRecord(a, noon(), nil)
	for i := range MaxBoots {
		if record.Exhausted(a, noon().Add(time.Hour)) {
			t.Fatalf("exhausted after %d reboots", i)
		}
		record = NewRecord(a, noon().Add(time.Hour), &record)
	}
	if !record.Exhausted(a, noon().Add(2*time.Hour)) {
		t.Error("a fourth reboot with the same image is allowed")
	}
	if record.Exhausted(image("2", "env/1"), noon().Add(2*time.Hour)) || record.Exhausted(a, noon().Add(26*time.Hour)) {
		t.Error("another image, or a day later, does not begin anew")
	}
}

func TestARecordTellsNothing(t *testing.T) {
	t.Parallel()
	a := image("1", "env/1", "nmstate", "a/1")
	r := NewRecord(a, noon(), nil)
	for _, text := range []string{r.Image, r.URL, r.Shared["infra_env"], r.Own["nmstate"]} {
		if len(text) != 32 {
			t.Errorf("%q is no hash", text)
		}
	}
	if !r.IsAbout(a.URL) || !r.IsAbout("http://images/1.iso?token=******") || r.IsAbout("http://images/2.iso") {
		t.Error("a record does not know its own URL")
	}
}
