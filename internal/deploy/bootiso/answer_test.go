package bootiso

import (
	"slices"
	"testing"
	"time"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// image returns the nth image of a site, with the shared artifacts and those of one machine.
func image(n, shared string, own ...string) Artifacts {
	a := Artifacts{URL: "http://images/" + n + ".iso?token=secret", SharedContent: map[string]string{"infra_env": shared}}
	for i := 0; i+1 < len(own); i += 2 {
		if a.HostContent == nil {
			a.HostContent = map[string]string{}
		}
		a.HostContent[own[i]] = own[i+1]
	}
	return a
}

// input describes a registered machine that booted with other artifacts than the wanted ones.
func input(booted, want Artifacts, change ...func(*Input)) Input {
	record := NewRecord(booted, noon(), nil)
	in := Input{Machine: Candidate{Booted: &record, Powered: true}, Want: NewWant(want), Now: noon()}
	for _, c := range change {
		c(&in)
	}
	return in
}

// decide returns what is so at noon.
func decide(booted, want Artifacts, change ...func(*Input)) Status {
	return Decide(input(booted, want, change...)).Now
}

func unsettled(in *Input) { in.Want.BuiltAt = noon().Add(-time.Second) }

func want(t *testing.T, got Status, action Action, stale bool, obsolete ...string) {
	t.Helper()
	if got.Action != action || got.Stale != stale || !slices.Equal(got.Obsolete, obsolete) {
		t.Errorf("got %+v, want %s, stale %v, obsolete %v", got, action, stale, obsolete)
	}
}

// The seven upstream test cases. An InfraEnv is a shared artifact, an NMStateConfig is the machine's own.

func TestDecide_addNMStateConfigsOneByOne(t *testing.T) {
	t.Parallel()
	want(t, decide(image("1", "env/1"), image("2", "env/1")), None, false) // the NMStateConfig is for another machine
	want(t, decide(image("1", "env/1"), image("2", "env/1", "nmstate", "a/1")), Restart, true, "host.nmstate")
	want(t, decide(image("2", "env/1", "nmstate", "a/1"), image("3", "env/1", "nmstate", "a/1")), None, false)
}

func TestDecide_fixInvalidNMStateConfig(t *testing.T) {
	t.Parallel()
	// With an invalid configuration the machine has no network and cannot register.
	unregistered := func(in *Input) { in.Want.Registered = false }
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), image("2", "env/1", "nmstate", "a/2"), unregistered), Restart, true,
		"host.nmstate", "image")
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), image("1", "env/1", "nmstate", "a/1"), unregistered), None, false)
}

func TestDecide_updateNMStateConfigOfAnAgent(t *testing.T) {
	t.Parallel()
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), image("2", "env/1", "nmstate", "a/2")), Restart, true, "host.nmstate")
	// the image is not rebuilt yet
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), image("1", "env/1", "nmstate", "a/2")), Wait, true, "host.nmstate")
}

func TestDecide_multipleNMStateConfigsOfAnAgent(t *testing.T) {
	t.Parallel()
	both := image("1", "env/1", "nmstate-a", "a/1", "nmstate-b", "b/1")
	want(t, decide(both, image("2", "env/1", "nmstate-a", "a/1", "nmstate-b", "b/1")), None, false)
	want(t, decide(both, image("2", "env/1", "nmstate-a", "a/1", "nmstate-b", "b/2")), Restart, true, "host.nmstate-b")
	want(t, decide(image("1", "env/1", "nmstate-a", "a/1"), both), Wait, true, "host.nmstate-b")
}

func TestDecide_removeNMStateConfigOfAnAgent(t *testing.T) {
	t.Parallel()
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), image("2", "env/1")), Restart, true, "host.nmstate")
}

func TestDecide_addNMStateConfigToARunningAgent(t *testing.T) {
	t.Parallel()
	want(t, decide(image("1", "env/1"), image("1", "env/1", "nmstate", "a/1")), Wait, true, "host.nmstate")
	want(t, decide(image("1", "env/1"), image("2", "env/1", "nmstate", "a/1")), Restart, true, "host.nmstate")
	want(t, decide(image("1", "env/1"), image("2", "env/2", "nmstate", "a/1")), Restart, true, "host.nmstate", "shared.infra_env")
}

func TestDecide_updateProxyWhileTheAgentRuns(t *testing.T) {
	t.Parallel()
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), image("2", "env/2", "nmstate", "a/1")), None, true, "shared.infra_env")
	want(t, decide(image("1", "env/1"), image("2", "env/2")), None, true, "shared.infra_env")
}

// Further test cases.

func TestDecide_ignoresTokensInTheURL(t *testing.T) {
	t.Parallel()
	other := image("1", "env/1", "nmstate", "a/1")
	other.URL = "http://user:pw@images/1.iso?token=other#x"
	unregistered := func(in *Input) { in.Want.Registered = false }
	want(t, decide(image("1", "env/1", "nmstate", "a/1"), other, unregistered), None, false)
	if other.Digest() != image("1", "env/1", "nmstate", "a/1").Digest() {
		t.Error("the digest depends on the token")
	}
}

func TestDecide_versionIsTheImagesIdentity(t *testing.T) {
	t.Parallel()
	unregistered := func(in *Input) { in.Want.Registered = false }
	a := Artifacts{URL: "http://images/1.iso", Version: "sha256:1"}
	want(t, decide(a, Artifacts{URL: "http://mirror/new.iso", Version: "sha256:1"}, unregistered), None, false)
	want(t, decide(a, Artifacts{URL: "http://images/1.iso", Version: "sha256:2"}, unregistered), Restart, true, "image")
}

func TestDecide_neverRestartsWithoutARecord(t *testing.T) {
	t.Parallel()
	everyFact(func(f Facts) {
		for _, policy := range []Policy{"", PolicyAffected, PolicyAlways, PolicyNever} {
			got := Decide(Input{
				Machine: Candidate{Powered: true, Protected: f.HostAtBoot, Asked: f.HostUnused},
				Want:    Want{Artifacts: image("1", "env/1"), Policy: policy, Installing: f.Installing, Registered: f.Registered},
				Unbuilt: f.Newer, Changed: []string{"traits"}, Imported: f.Settled, Now: noon(),
			})
			want(t, got.Apply, None, false, ObsoleteUnknown)
			want(t, got.Now, None, false, ObsoleteUnknown)
		}
	})
}

func TestDecide_policy(t *testing.T) {
	t.Parallel()
	policy := func(p Policy) func(*Input) { return func(in *Input) { in.Want.Policy = p } }
	before, concerned, other := image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), image("2", "env/1", "n", "a/1")
	want(t, decide(before, concerned, policy(PolicyNever)), None, true, "host.n")
	want(t, decide(before, other, policy(PolicyAlways)), Restart, true, "image")
	want(t, decide(before, before, policy(PolicyAlways)), None, false)
	installing := func(in *Input) { in.Want.Policy, in.Want.Installing = PolicyAlways, true }
	want(t, decide(before, other, installing), None, false)
	want(t, decide(before, other, policy(PolicyAlways), unsettled), Wait, true, "image")
}

func TestDecide_manualWithoutPowerControl(t *testing.T) {
	t.Parallel()
	unpowered := func(in *Input) { in.Machine.Powered = false }
	want(t, decide(image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), unpowered), Manual, true, "host.n")
	want(t, decide(image("1", "env/1"), image("2", "env/2"), unpowered), None, true, "shared.infra_env")
}

func TestRecord_loopGuard(t *testing.T) {
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

func TestRecord_hasNoSecrets(t *testing.T) {
	t.Parallel()
	a := image("1", "env/1", "nmstate", "a/1")
	r := NewRecord(a, noon(), nil)
	for _, text := range []string{r.Image, r.URL, r.SharedContent["infra_env"], r.HostContent["nmstate"]} {
		if len(text) != 32 {
			t.Errorf("%q is no hash", text)
		}
	}
	if !r.IsAbout(a.URL) || !r.IsAbout("http://images/1.iso?token=******") || r.IsAbout("http://images/2.iso") {
		t.Error("a record does not know its own URL")
	}
}

func TestDecide_applyWaitsUntilTheImageHasSettled(t *testing.T) {
	t.Parallel()
	before, concerned := image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2")
	for name, tc := range map[string]struct {
		change     func(*Input)
		now, apply Action
	}{
		"no time of the build":       {func(*Input) {}, Restart, Restart},
		"built a second ago":         {unsettled, Wait, Restart},
		"built a minute ago":         {func(in *Input) { in.Want.BuiltAt = noon().Add(-time.Minute) }, Restart, Restart},
		"no quiet period":            {func(in *Input) { unsettled(in); in.Want.Quiet = 0 }, Restart, Restart},
		"only a person can start it": {func(in *Input) { unsettled(in); in.Machine.Powered = false }, Wait, Manual},
		"the configuration changed":  {func(in *Input) { unsettled(in); in.Changed = []string{"traits"} }, Wait, Restart},
	} {
		got := Decide(input(before, concerned, tc.change))
		if got.Now.Action != tc.now || got.Apply.Action != tc.apply || !got.Now.Stale || !got.Apply.Stale {
			t.Errorf("%s: got %+v, want %s now and %s by an apply", name, got, tc.now, tc.apply)
		}
	}
}

// A protected machine keeps running as one that is being installed does, but an operator must not wait for an installation.
func TestDecide_saysWhatKeepsAMachineRunning(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		protected, installing bool
		policy                Policy
		why                   string
	}{
		"protected": {true, false, PolicyAffected, "it is protected in Ironic; with protected = false, a new image " +
			"can restart it"},
		"protected, never restarted": {true, false, PolicyNever, "it is protected in Ironic"},
		"installing":                 {false, true, PolicyAffected, "it is being installed"},
		"both":                       {true, true, PolicyAffected, "it is being installed"},
	} {
		got := Decide(input(image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), func(in *Input) {
			in.Machine.Protected, in.Want.Installing, in.Want.Policy = tc.protected, tc.installing, tc.policy
		}))
		for _, status := range []Status{got.Apply, got.Now} {
			if status.Why != tc.why || status.Action != None {
				t.Errorf("%s: got %s, %q", name, status.Action, status.Why)
			}
		}
	}
}

func TestDecide_protectedMachineCountsAsInstalling(t *testing.T) {
	t.Parallel()
	protected := func(in *Input) { in.Machine.Protected = true }
	want(t, decide(image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), protected), None, true, "host.n")
}

func TestDecide_imageThatIsNotBuiltIsNewer(t *testing.T) {
	t.Parallel()
	unbuilt := func(in *Input) { in.Unbuilt = true }
	want(t, decide(image("1", "env/1", "n", "a/1"), image("1", "env/1", "n", "a/2"), unbuilt), Restart, true, "host.n")
	want(t, decide(image("1", "env/1", "n", "a/1"), image("1", "env/2", "n", "a/1"), unbuilt), None, true, "shared.infra_env")
}

func TestDecide_otherChangesRestartTheMachine(t *testing.T) {
	t.Parallel()
	a := image("1", "env/1", "n", "a/1")
	changed := func(in *Input) { in.Changed = []string{"config_drive", "traits"} }
	want(t, decide(a, a, changed), Restart, true, "config_drive", "traits")
	want(t, decide(a, image("1", "env/1", "n", "a/2"), changed), Restart, true, "config_drive", "host.n", "traits") // instead of waiting
	want(t, decide(a, a, changed, func(in *Input) { in.Machine.Powered = false }), Manual, true, "config_drive", "traits")
	for name, exempt := range map[string]func(*Input){
		"installing": func(in *Input) { in.Want.Installing = true },
		"protected":  func(in *Input) { in.Machine.Protected = true },
		"never":      func(in *Input) { in.Want.Policy = PolicyNever },
		"imported":   func(in *Input) { in.Imported = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, decide(a, a, changed, exempt), None, false)
		})
	}
}

func TestDecide_importRestartsNothing(t *testing.T) {
	t.Parallel()
	imported := func(in *Input) { in.Imported = true }
	before := image("1", "env/1", "n", "a/1")
	want(t, decide(before, image("2", "env/1", "n", "a/2"), imported), None, true, "host.n")
	want(t, decide(before, image("2", "env/1", "n", "a/2"), imported, func(in *Input) { in.Machine.Powered = false }), None, true, "host.n")
	want(t, decide(before, image("1", "env/1", "n", "a/2"), imported), Wait, true, "host.n")
}

func TestDecide_remembersARestartByHand(t *testing.T) {
	t.Parallel()
	a := image("1", "env/1", "n", "a/1")
	asked := func(obsolete ...string) func(*Input) {
		return func(in *Input) {
			in.Machine.Powered, in.Machine.Asked = false, true
			in.Machine.Booted.Manual, in.Machine.Booted.Obsolete = true, obsolete
		}
	}
	want(t, decide(a, a, asked("host.n")), Manual, true, "host.n")
	want(t, decide(a, a, asked()), Manual, true, ObsoleteImage) // the record of an earlier version
	want(t, Decide(input(a, a, asked("host.n"))).Apply, None, false)
	want(t, decide(a, image("1", "env/1", "n", "a/2"), asked("host.x")), Wait, true, "host.n")
}

func TestDecide_triggersRestartEveryMachine(t *testing.T) {
	t.Parallel()
	a := image("1", "env/1", "n", "a/1")
	demanded := func(in *Input) { in.Demanded = []string{"rebuild_triggers"} }
	for name, also := range map[string]func(*Input){
		"nothing else": func(*Input) {},
		"installing":   func(in *Input) { in.Want.Installing = true },
		"never":        func(in *Input) { in.Want.Policy = PolicyNever },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, Decide(input(a, a, demanded, also)).Apply, Restart, true, "rebuild_triggers")
		})
	}
	want(t, decide(a, a, demanded, func(in *Input) { in.Machine.Booted = nil }), Restart, true, "rebuild_triggers")
	want(t, decide(a, a, demanded, func(in *Input) { in.Machine.Powered = false }), Manual, true, "rebuild_triggers")
	want(t, decide(a, a, demanded, func(in *Input) { in.Imported = true }), None, false)
	unknown := func(in *Input) { in.Machine.Booted, in.Imported = nil, true }
	want(t, decide(a, a, demanded, unknown), None, false, ObsoleteUnknown)
}

func TestDecide_imageWithoutWantedContent(t *testing.T) {
	t.Parallel()
	contains := func(content map[string]string) func(*Input) {
		return func(in *Input) { in.Want.Contains = content }
	}
	booted, wanted := image("1", "env/1", "nmstate", "a/1"), image("2", "env/1", "nmstate", "a/2")
	all := map[string]string{"infra_env": "env/1", "nmstate": "a/2", "other": "x"}
	want(t, decide(booted, wanted, contains(all)), Restart, true, "host.nmstate")
	// built before the change
	want(t, decide(booted, wanted, contains(map[string]string{"infra_env": "env/1", "nmstate": "a/1"})), Wait, true, "host.nmstate")
	want(t, decide(booted, wanted, contains(map[string]string{})), Wait, true, "host.nmstate")
	// the shared part is older
	want(t, decide(booted, wanted, contains(map[string]string{"infra_env": "env/0", "nmstate": "a/2"})), Wait, true, "host.nmstate")
	// it runs what is wanted
	want(t, decide(booted, booted, contains(map[string]string{})), None, false)
	unregistered := func(in *Input) { in.Want.Registered = false }
	want(t, decide(booted, wanted, unregistered, contains(map[string]string{})), Wait, true, "host.nmstate", "image")
	always := func(in *Input) { in.Want.Policy = PolicyAlways }
	want(t, decide(booted, image("2", "env/1", "nmstate", "a/1"), always, contains(map[string]string{"infra_env": "env/1"})),
		Wait, true, "image")
	unpowered := func(in *Input) { in.Machine.Powered = false }
	want(t, decide(booted, wanted, unpowered, contains(map[string]string{})), Wait, true, "host.nmstate") // a person needs the image, too
	if why := decide(booted, wanted, contains(map[string]string{})).Why; why != "its own configuration changed, and the image does not "+
		"contain host.nmstate, shared.infra_env yet" {
		t.Errorf("why = %q", why)
	}
}

func TestDecide_waitsForAMachineThatNothingMayRestart(t *testing.T) {
	t.Parallel()
	rescued := func(in *Input) { in.Machine.Rescued = true }
	barred := func(in *Input) { in.Machine.Barred = "it is in maintenance" }
	before, concerned, other := image("1", "env/1", "n", "a/1"), image("2", "env/1", "n", "a/2"), image("2", "env/2", "n", "a/1")
	for name, why := range map[string]func(*Input){"it is in rescue mode": rescued, "it is in maintenance": barred} {
		status := decide(before, concerned, why)
		if want(t, status, Wait, true, "host.n"); status.Why != "its own configuration changed, and "+name {
			t.Errorf("why = %q", status.Why)
		}
		want(t, decide(before, other, why), None, true, "shared.infra_env")
		want(t, decide(before, before, why), None, false)
		want(t, decide(before, before, why, func(in *Input) { in.Demanded = []string{"rebuild_triggers"} }), Wait, true, "rebuild_triggers")
		want(t, decide(before, concerned, why, func(in *Input) { in.Machine.Powered = false }), Wait, true, "host.n")
		want(t, decide(before, concerned, why, func(in *Input) { in.Want.Policy = PolicyNever }), None, true, "host.n")
	}
}

func TestDecide_saysThatAnApplyWouldLoop(t *testing.T) {
	t.Parallel()
	a, demanded := image("1", "env/1"), func(in *Input) { in.Demanded = []string{"rebuild_triggers"} }
	for boots, loops := range map[int]bool{1: false, MaxBoots: false, MaxBoots + 1: true} {
		counted := func(in *Input) { in.Machine.Booted.Boots = boots }
		for name, tc := range map[string]struct {
			want   Artifacts
			change func(*Input)
			loops  bool
		}{
			"demanded":      {a, demanded, loops},
			"not asked for": {a, func(*Input) {}, false},
			"another image": {image("2", "env/1"), demanded, false},
			"not built yet": {a, func(in *Input) { demanded(in); in.Unbuilt = true }, false},
			"a day later":   {a, func(in *Input) { demanded(in); in.Now = noon().Add(Window) }, false},
		} {
			if got := Decide(input(a, tc.want, counted, tc.change)).Loops; got != tc.loops {
				t.Errorf("%d boots, %s: got %v", boots, name, got)
			}
		}
	}
}

// The second case of an image that is built elsewhere: it is published for another reason, and does not have yet what this machine got
// since.
func TestDecide_contentIsInAnImageThatChangedAfterIt(t *testing.T) {
	t.Parallel()
	a1, a2, a3 := image("1", "env/1"), image("2", "env/2"), image("3", "env/2", "n", "c/1")
	late := image("2", "env/2", "n", "c/1") // wanted with an image that was wanted before
	record := NewRecord(a1, noon(), nil)
	noted := func(in *Input) { in.Machine.Wanted = NextWanted(a2, record, nil) }
	for name, tc := range map[string]struct {
		want     Artifacts
		change   func(*Input)
		action   Action
		obsolete []string
	}{
		"nothing of its own":      {a2, noted, None, []string{"shared.infra_env"}},
		"its content is younger":  {late, noted, Wait, []string{"host.n", "shared.infra_env"}},
		"the image changed since": {a3, noted, Restart, []string{"host.n", "shared.infra_env"}},
		"both changed together":   {late, func(*Input) {}, Restart, []string{"host.n", "shared.infra_env"}},
		"contains says that it is in it": {late, func(in *Input) {
			noted(in)
			in.Want.Contains = map[string]string{"infra_env": "env/2", "n": "c/1"}
		}, Restart, []string{"host.n", "shared.infra_env"}},
		"it has not registered": {late, func(in *Input) {
			noted(in)
			in.Want.Registered = false
		}, Restart, []string{"host.n", "image", "shared.infra_env"}},
		"it always restarts": {late, func(in *Input) {
			noted(in)
			in.Want.Policy = PolicyAlways
		}, Restart, []string{"host.n", "shared.infra_env"}},
		"it never restarts": {late, func(in *Input) {
			noted(in)
			in.Want.Policy = PolicyNever
		}, None, []string{"host.n", "shared.infra_env"}},
		"a trigger asks for it": {late, func(in *Input) {
			noted(in)
			in.Demanded = []string{"t"}
		}, Restart, []string{"host.n", "shared.infra_env", "t"}},
		"the image is not built yet": {late, func(in *Input) {
			noted(in)
			in.Unbuilt = true
		}, Restart, []string{"host.n", "shared.infra_env"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, decide(a1, tc.want, tc.change), tc.action, true, tc.obsolete...)
		})
	}
	if why := decide(a1, late, noted).Why; why != "its own configuration changed after the image did" {
		t.Errorf("why = %q", why)
	}
	first := NextWanted(a2, record, nil)
	if again := NextWanted(late, record, first); again != first {
		t.Errorf("content that changed later counts as in the image: %+v", again)
	}
	if NextWanted(a1, record, first) != nil || NextWanted(a3, record, first) == first {
		t.Error("another image is not noted, or one that is booted is")
	}
	// A machine that boots such an image for another reason still needs the next one.
	booted := NewRecord(late, noon(), &record).Holding(late, first)
	in := input(a1, a3)
	in.Machine.Booted = &booted
	want(t, Decide(in).Now, Restart, true, "host.n")
	in.Want = NewWant(late)
	want(t, Decide(in).Now, Wait, true, "host.n")
}
