package fakeoneview_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

func TestOtherUser_takesAndReleasesAServer(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(1)
	uri := fake.TakeHardware(fleet.Hardware[0])
	h := fake.HardwareAt(fleet.Hardware[0])
	if h.ProfileURI != uri || h.State != fakeoneview.ProfileApplied || h.Power != fakeoneview.On || !fake.Profiles()[0].Others {
		t.Errorf("hardware = %+v, profiles = %+v", h, fake.Profiles())
	}
	if again := fake.TakeHardware(fleet.Hardware[0]); again != "" {
		t.Errorf("a server with a profile was taken: %s", again)
	}
	fake.ReleaseHardware(fleet.Hardware[0])
	if h := fake.HardwareAt(fleet.Hardware[0]); h.ProfileURI != "" || h.State != fakeoneview.NoProfileApplied ||
		h.Power != fakeoneview.Off || len(fake.Profiles()) != 0 {
		t.Errorf("hardware = %+v, profiles = %+v", h, fake.Profiles())
	}
}

func TestOtherUser_actsBetweenSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		method string
		path   string
		effect func(take func()) fakeoneview.Effect
	}{
		{"after the hardware was read", http.MethodGet, "^/rest/server-hardware/", fakeoneview.RightAfter},
		{"before the POST is checked", http.MethodPost, postProfiles, fakeoneview.Meanwhile},
		{"between POST and Running", http.MethodPost, postProfiles, fakeoneview.BeforeRunning},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var fake fakeoneview.Server
			fleet := fake.AddBlades(1)
			var theirs string
			hits := fake.Inject(fakeoneview.Fault{Method: tt.method, Path: tt.path, Effect: tt.effect(func() {
				theirs = fake.TakeHardware(fleet.Hardware[0])
			})})
			a := login(t, &fake)
			if got := a.get(fleet.Hardware[0]); got.body["serverProfileUri"] != nil {
				t.Errorf("hardware = %s, want it free", got.text)
			}
			a.create(fleet.TemplateURI, fleet.Hardware[0], "web").wantTask(t, fakeoneview.TaskError, "ProfileAlreadyExistsInServer")
			if all := fake.Profiles(); hits() != 1 || len(all) != 1 || all[0].URI != theirs {
				t.Errorf("%d hits, profiles = %+v", hits(), all)
			}
		})
	}
}

func TestOtherUser_hookBeforeEndSeesTheOperation(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
	var seen []fakeoneview.Profile
	fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Effect: fakeoneview.BeforeEnd(func() {
		seen = fake.Profiles()
	})})
	a.create(fleet.TemplateURI, fleet.Hardware[0], "web").wantTask(t, fakeoneview.TaskCompleted, "")
	if len(seen) != 1 || !seen[0].InProgress {
		t.Errorf("profiles = %+v", seen)
	}
}

func TestOtherUser_takingEndsAPowerChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeoneview.Server{StepTime: time.Minute}
		fleet := fake.AddBlades(1)
		fake.PowerOn(fleet.Hardware[0])
		a := login(t, fake)
		task := a.begin(http.MethodPut, fleet.Hardware[0]+"/powerState", power("Off", "PressAndHold"))
		fake.TakeHardware(fleet.Hardware[0])
		time.Sleep(time.Hour)
		a.get(task).wantTask(t, fakeoneview.TaskCompleted, "")
		if got := fake.HardwareAt(fleet.Hardware[0]).Power; got != fakeoneview.On {
			t.Errorf("power = %s: the server of the other user was switched off", got)
		}
	})
}

func TestHarm_listsChangesOfOthers(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(2)
	theirs := fake.TakeHardware(fleet.Hardware[0])
	a := login(t, &fake)
	profile := a.get(theirs).body

	for _, harmless := range []func(){
		func() { a.get(theirs) },
		func() { a.get(fleet.Hardware[0]) },
		func() { a.do(http.MethodPut, fleet.Hardware[1]+"/powerState", power("On", "MomentaryPress")) },
		func() { a.do(http.MethodPut, fleet.Hardware[1]+"/powerState", power("Off", "PressAndHold")) },
		func() { a.create(fleet.TemplateURI, fleet.Hardware[0], "web") },
		func() { a.create(fleet.TemplateURI, fleet.Hardware[1], "web") },
		func() {
			guarded := *a
			guarded.ifMatch = "1526058827348/42"
			guarded.do(http.MethodDelete, theirs, nil)
		},
		func() {
			stranger := *a
			stranger.token = "expired"
			stranger.do(http.MethodDelete, theirs, nil)
		},
		func() { fake.ReleaseHardware(fake.AddBlades(1).Hardware[0]) },
	} {
		harmless()
	}
	if harm := fake.Harm(); len(harm) != 0 {
		t.Errorf("harm = %q, want none", harm)
	}

	a.ifMatch = "*"
	for i, tt := range []struct {
		do   func()
		want []string
	}{
		{func() {
			a.do(http.MethodPut, fleet.Hardware[0]+"/powerState", power("Off", "PressAndHold"))
		}, []string{"PUT", "/powerState", `"PressAndHold"`, "answered 202", `"other-user-`, "Encl1, bay 1"}},
		{func() { a.do(http.MethodPut, fleet.Hardware[0]+"/powerState", "{}") }, []string{"answered 400"}},
		{func() { a.do(http.MethodPut, theirs, profile) }, []string{"PUT " + theirs}},
		{func() { a.do(http.MethodPatch, theirs, patch("/refreshState", "RefreshPending")) }, []string{"PATCH " + theirs}},
		{func() { a.do(http.MethodDelete, theirs+"?force=true", nil) }, []string{"DELETE " + theirs + "?force=true"}},
	} {
		tt.do()
		harm := fake.Harm()
		if len(harm) != i+1 {
			t.Fatalf("harm = %q, want %d", harm, i+1)
		}
		for _, want := range tt.want {
			if !strings.Contains(harm[i], want) {
				t.Errorf("harm = %q, want it to contain %q", harm[i], want)
			}
		}
	}
}

func TestHarm_countsAttempts(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(1)
	theirs := fake.TakeHardware(fleet.Hardware[0])
	a := login(t, &fake)
	a.ifMatch = "*"
	fake.Inject(fakeoneview.Fault{Method: http.MethodDelete, Effect: fakeoneview.Locked()})
	fake.Inject(fakeoneview.Fault{Method: http.MethodPut, Effect: fakeoneview.Drop()})
	a.do(http.MethodDelete, theirs, nil)
	if _, err := a.try(http.MethodPut, fleet.Hardware[0]+"/powerState", power("Off", "PressAndHold")); err == nil {
		t.Error("the connection was not broken")
	}
	if harm := fake.Harm(); len(harm) != 2 || !strings.Contains(harm[0], "answered 409") || !strings.Contains(harm[1], "powerState") {
		t.Errorf("harm = %q", harm)
	}
}

func TestOtherUser_releasingEndsAnOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, a, fleet := start(t, &fakeoneview.Server{StepTime: time.Second}, 2)
		task := a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
		on := a.begin(http.MethodPut, fleet.Hardware[1]+"/powerState", power("On", "MomentaryPress"))
		time.Sleep(2 * time.Second)
		fake.ReleaseHardware(fleet.Hardware[0])
		fake.ReleaseHardware(fleet.Hardware[1])
		time.Sleep(time.Minute)
		got := a.get(task)
		got.wantTask(t, fakeoneview.TaskCompleted, "")
		uri, _ := got.member("associatedResource", "resourceUri").(string)
		if profile := a.get(uri); profile.status != http.StatusNotFound {
			t.Errorf("GET of the profile = %d, want 404", profile.status)
		}
		a.get(on).wantTask(t, fakeoneview.TaskCompleted, "")
		for _, h := range fake.Hardware() {
			if h.ProfileURI != "" || h.State != fakeoneview.NoProfileApplied || h.PowerLock || h.Power != fakeoneview.Off {
				t.Errorf("hardware = %+v", h)
			}
		}
	})
}

func TestOtherUser_releasedServerHasNoProfile(t *testing.T) {
	t.Parallel()
	fake, a, fleet, uri := withProfile(t)
	profile := a.get(uri).body
	profile["serverHardwareUri"] = fleet.Hardware[1]
	fake.Inject(fakeoneview.Fault{Method: http.MethodPut, Effect: fakeoneview.RightAfter(func() {
		fake.ReleaseHardware(fleet.Hardware[0])
	})})
	fake.Inject(fakeoneview.Fault{Method: http.MethodPut, Effect: fakeoneview.BeforeRunning(func() {
		fake.ReleaseHardware(fleet.Hardware[0])
	})})
	a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskCompleted, "")
	for _, h := range fake.Hardware() {
		if h.ProfileURI != "" && a.get(h.ProfileURI).status != http.StatusOK {
			t.Errorf("hardware = %+v, profiles = %+v", h, fake.Profiles())
		}
	}
}

func TestOtherUser_movedProfileIsTheirs(t *testing.T) {
	t.Parallel()
	s := &fakeoneview.Server{}
	blades := s.AddBlades(2)
	uri := s.AddProfile(fakeoneview.NewProfile{HardwareURI: blades.Hardware[0]})
	s.MoveProfile(uri, blades.Hardware[1])
	if from, to := s.HardwareAt(blades.Hardware[0]), s.HardwareAt(blades.Hardware[1]); from.ProfileURI != "" || to.ProfileURI != uri ||
		to.Power != fakeoneview.On {
		t.Errorf("it was moved from %+v to %+v", from, to)
	}
	if p := s.Profiles()[0]; !p.Others || p.HardwareURI != blades.Hardware[1] {
		t.Errorf("the profile is %+v", p)
	}
}

func TestOtherUser_markedProfileIsTheirs(t *testing.T) {
	t.Parallel()
	fake, a, _, uri := withProfile(t)
	fake.MarkOthers(uri)
	a.get(a.begin(http.MethodDelete, profilesPath, nil)) // deletes every profile
	if harm := fake.Harm(); len(harm) != 1 || !strings.Contains(harm[0], `"web" of another user on Encl1, bay 1`) {
		t.Errorf("harm = %q", harm)
	}
}

func TestRestart_endsSessionsAndTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, a, fleet := start(t, &fakeoneview.Server{StepTime: time.Second}, 2)
		running := a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "a"))
		time.Sleep(2 * time.Second)
		fresh := a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[1], "b"))
		fake.Restart(time.Minute)
		if got := a.get("/rest/version"); got.status != http.StatusServiceUnavailable {
			t.Errorf("answer while it starts = %d, want 503", got.status)
		}
		time.Sleep(time.Minute)
		if got := a.get(running); got.status != http.StatusUnauthorized {
			t.Errorf("answer to an old session = %d, want 401", got.status)
		}
		a = login(t, fake)
		for _, task := range []string{running, fresh} {
			if got := a.get(task).text1("taskState"); got != "Interrupted" {
				t.Errorf("task = %s, want Interrupted", got)
			}
		}
		first, second := fake.HardwareAt(fleet.Hardware[0]), fake.HardwareAt(fleet.Hardware[1])
		if first.State != fakeoneview.ProfileError || first.ProfileURI == "" || second.State != fakeoneview.NoProfileApplied {
			t.Errorf("hardware = %+v, %+v", first, second)
		}
	})
}

func TestSession_expiredAnswers401(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	a := login(t, &fake)
	fake.Inject(fakeoneview.Fault{Path: "^/rest/tasks$", Nth: 2, Effect: fakeoneview.Meanwhile(fake.ExpireSessions)})
	for i, want := range []int{http.StatusOK, http.StatusUnauthorized, http.StatusUnauthorized} {
		if got := a.get("/rest/tasks").status; got != want {
			t.Errorf("request %d = %d, want %d", i, got, want)
		}
	}
	if got := login(t, &fake).get("/rest/tasks").status; got != http.StatusOK {
		t.Errorf("request of a new session = %d", got)
	}
}

func TestOtherUser_addProfile(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 2)
	linked := fake.AddProfile(fakeoneview.NewProfile{Name: "linked", HardwareURI: fleet.Hardware[0], TemplateURI: fleet.TemplateURI})
	unlinked := fake.AddProfile(fakeoneview.NewProfile{
		Name: "unlinked", HardwareURI: fleet.Hardware[1], TemplateURI: fleet.TemplateURI,
		Unlinked: true,
	})
	if got := a.get(linked); got.text1("templateCompliance") != "Compliant" || got.text1("name") != "linked" {
		t.Errorf("linked profile = %s", got.text)
	}
	if got := a.get(unlinked); got.text1("templateCompliance") != "Unknown" || got.body["serverProfileTemplateUri"] != nil ||
		got.body["connectionSettings"] == nil {
		t.Errorf("unlinked profile = %s", got.text)
	}
	for _, p := range fake.Profiles() {
		if p.Others || p.InProgress {
			t.Errorf("profile = %+v", p)
		}
	}
}
