package fakeoneview_test

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

const (
	postProfiles = "^/rest/server-profiles$"
	tasksPath    = "^/rest/tasks/"
)

// macTypeProblem is an observed error of an appliance.
func macTypeProblem() fakeoneview.Problem {
	return fakeoneview.Problem{
		Code:    "MacTypeDiffGlobalMacType",
		Message: "When macType is not user defined, mac type should be same as the global Mac assignment Virtual.",
		Actions: []string{"Verify parameters and try again."},
	}
}

func TestFault_hitsMatchingRequests(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fake.AddBlades(1)
	a := login(t, &fake)
	hits := fake.Inject(fakeoneview.Fault{
		Method: http.MethodGet, Path: "^/rest/server-hardware$", Nth: 2, Count: 2,
		Effect: fakeoneview.ServerError(),
	})
	var got []int
	for range 5 {
		a.get("/rest/tasks") // does not match
		got = append(got, a.get("/rest/server-hardware").status)
	}
	if want := [5]int{200, 500, 500, 200, 200}; [5]int(got) != want || hits() != 2 {
		t.Errorf("answers = %v with %d hits, want %v with 2", got, hits(), want)
	}
	always := fake.Inject(fakeoneview.Fault{Count: fakeoneview.Always, Effect: fakeoneview.ServerError()})
	for range 3 {
		if got := a.get("/rest/version").status; got != http.StatusInternalServerError {
			t.Errorf("answer = %d, want 500", got)
		}
	}
	fake.ClearFaults()
	if got := a.get("/rest/version").status; got != http.StatusOK || always() != 3 {
		t.Errorf("answer without faults = %d, hits = %d", got, always())
	}
}

func TestFault_refusalHasNoEffect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		effect           fakeoneview.Effect
		status           int
		code, retryAfter string
	}{
		{"expired or without right", fakeoneview.NotAuthorized(), 401, "AUTHORIZATION", ""},
		{"bad login", fakeoneview.BadLogin(), 400, "AUTHN_AUTH_FAIL", ""},
		{"stale", fakeoneview.StaleETag(), 412, "CRM_ETAG_CHECK_FAILED", ""},
		{"locked", fakeoneview.Locked(), 409, "RESOURCE_LOCKED", ""},
		{"internal", fakeoneview.ServerError(), 500, "GENERIC_HTTP_500", ""},
		{"unavailable", fakeoneview.Unavailable(-1), 503, "GENERIC_HTTP_503", ""},
		{"unavailable for a while", fakeoneview.Unavailable(30 * time.Second), 503, "GENERIC_HTTP_503", "30"},
		{"too many", fakeoneview.TooManyRequests(5 * time.Second), 429, "", "5"},
		{"of one's own", fakeoneview.Refuse(409, fakeoneview.Problem{Code: "MINE"}), 409, "MINE", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
			profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")
			fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Effect: tt.effect})
			got := a.do(http.MethodPost, profilesPath, profile)
			if got.status != tt.status || got.text1("errorCode") != tt.code || got.header.Get("Retry-After") != tt.retryAfter {
				t.Errorf("answer = %d %v %s, want %d %s", got.status, got.header, got.text, tt.status, tt.code)
			}
			if n := len(fake.Profiles()); n != 0 {
				t.Errorf("%d profiles after a refused POST", n)
			}
			a.get(a.begin(http.MethodPost, profilesPath, profile)).wantTask(t, fakeoneview.TaskCompleted, "")
		})
	}
}

func TestFault_connectionBreaksBeforeOrAfterTheEffect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		effect   fakeoneview.Effect
		profiles int
	}{{"before", fakeoneview.Drop(), 0}, {"after", fakeoneview.LoseAnswer(), 1}} {
		fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
		profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")
		fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Effect: tt.effect})
		if _, err := a.try(http.MethodPost, profilesPath, profile); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: error = %v, want a broken connection", tt.name, err)
		}
		log := fake.Requests()
		if got := len(fake.Profiles()); got != tt.profiles || log[len(log)-1].Status != 0 {
			t.Errorf("%s: %d profiles, want %d; log %+v", tt.name, got, tt.profiles, log[len(log)-1])
		}
	}
}

func TestFault_formsOfAcceptedAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		effects []fakeoneview.Effect
		want    func(got answer) bool
	}{
		{"plain", nil, func(got answer) bool {
			return strings.HasPrefix(got.header.Get("Location"), "/rest/tasks/") && got.text1("uri") == got.header.Get("Location") &&
				got.text1("taskState") == "New" && got.text1("eTag") == "0" && got.text1("uri") == "/rest/tasks/"+
				strings.ToUpper(got.text1("uri")[12:])
		}},
		{"no body", []fakeoneview.Effect{fakeoneview.EmptyBody()}, func(got answer) bool {
			return got.text == "" && got.header.Get("Location") != ""
		}},
		{"no location", []fakeoneview.Effect{fakeoneview.NoLocation()}, func(got answer) bool {
			return got.text1("uri") != "" && got.header.Get("Location") == ""
		}},
		{"neither", []fakeoneview.Effect{fakeoneview.NoLocation(), fakeoneview.EmptyBody()}, func(got answer) bool {
			return got.text == "" && got.header.Get("Location") == ""
		}},
		{"other header", []fakeoneview.Effect{fakeoneview.TaskURIHeader()}, func(got answer) bool {
			return strings.HasPrefix(got.header.Get("X-Task-URI"), "/rest/tasks/") && got.header.Get("Location") == "" && got.text == ""
		}},
		{"absolute", []fakeoneview.Effect{fakeoneview.LocationAt("https://elsewhere")}, func(got answer) bool {
			return strings.HasPrefix(got.header.Get("Location"), "https://elsewhere/rest/tasks/")
		}},
		{"HTML", []fakeoneview.Effect{fakeoneview.HTML()}, func(got answer) bool { return strings.HasPrefix(got.text, "<!DOCTYPE") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
			for _, effect := range tt.effects {
				fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Effect: effect})
			}
			got := a.do(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
			if got.status != http.StatusAccepted || !tt.want(got) {
				t.Errorf("answer = %d %v %s", got.status, got.header, got.text)
			}
			if n := len(fake.Profiles()); n != 1 {
				t.Errorf("%d profiles, want 1: the request was accepted", n)
			}
		})
	}
}

func TestFault_taskFailsBeforeOrAfterTheProfileExists(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		effect   fakeoneview.Effect
		exists   bool
		resource bool
	}{
		{"validation", fakeoneview.FailValidation(macTypeProblem()), false, false},
		{"apply", fakeoneview.FailApply(macTypeProblem(), false), true, true},
		{"apply, profile not named", fakeoneview.FailApply(macTypeProblem(), true), true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
			fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Effect: tt.effect})
			task := a.create(fleet.TemplateURI, fleet.Hardware[0], "web")
			task.wantTask(t, fakeoneview.TaskError, "MacTypeDiffGlobalMacType")
			if (task.member("associatedResource", "resourceUri") != nil) != tt.resource {
				t.Errorf("task = %s", task.text)
			}
			hardware := fake.HardwareAt(fleet.Hardware[0])
			if !tt.exists {
				if hardware.ProfileURI != "" || len(fake.Profiles()) != 0 {
					t.Errorf("hardware = %+v, profiles = %+v", hardware, fake.Profiles())
				}
				return
			}
			if all := fake.Profiles(); len(all) != 1 || all[0].Status != fakeoneview.Critical || hardware.ProfileURI != all[0].URI ||
				hardware.State != fakeoneview.ProfileError {
				t.Errorf("hardware = %+v, profiles = %+v", hardware, all)
			}
			a.ifMatch = "*"
			a.get(a.begin(http.MethodDelete, hardware.ProfileURI, nil)).wantTask(t, fakeoneview.TaskCompleted, "")
		})
	}
}

func TestFault_deleteAndPowerFailHalfDone(t *testing.T) {
	t.Parallel()
	fake, a, fleet, uri := withProfile(t)
	a.ifMatch = "*"
	fake.Inject(fakeoneview.Fault{Method: http.MethodDelete, Effect: fakeoneview.FailApply(macTypeProblem(), false)})
	a.get(a.begin(http.MethodDelete, uri, nil)).wantTask(t, fakeoneview.TaskError, "MacTypeDiffGlobalMacType")
	if h := fake.HardwareAt(fleet.Hardware[0]); h.ProfileURI != uri || h.State != fakeoneview.ProfileError || h.PowerLock {
		t.Errorf("hardware = %+v", h)
	}
	fake.Inject(fakeoneview.Fault{Path: "powerState$", Effect: fakeoneview.FailApply(fakeoneview.Problem{Code: "ILO"}, false)})
	a.get(a.begin(http.MethodPut, fleet.Hardware[1]+"/powerState", power("On", "MomentaryPress"))).wantTask(t, fakeoneview.TaskError, "ILO")
	if got := fake.HardwareAt(fleet.Hardware[1]).Power; got != fakeoneview.Off {
		t.Errorf("power = %s, want Off", got)
	}
	profile := a.get(uri).body
	fake.Inject(fakeoneview.Fault{Method: http.MethodPut, Effect: fakeoneview.FailApply(fakeoneview.Problem{Code: "EDIT"}, false)})
	a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskError, "EDIT")
}

func TestFault_warningIsSuccess(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
	fake.Inject(fakeoneview.Fault{
		Method: http.MethodPost, Path: postProfiles,
		Effect: fakeoneview.Warn(fakeoneview.Problem{Code: "OLD_FIRMWARE"}),
	})
	task := a.create(fleet.TemplateURI, fleet.Hardware[0], "web")
	task.wantTask(t, fakeoneview.TaskWarning, "OLD_FIRMWARE")
	if h := fake.HardwareAt(fleet.Hardware[0]); h.State != fakeoneview.ProfileApplied || task.body["percentComplete"] != 100.0 {
		t.Errorf("hardware = %+v, task = %s", h, task.text)
	}
}

func TestFault_slowStuckAndForgottenTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, a, fleet := start(t, &fakeoneview.Server{StepTime: time.Second}, 3)
		var tasks []string
		for i, effect := range []fakeoneview.Effect{fakeoneview.SlowTask(3), fakeoneview.StuckTask(), fakeoneview.ForgetTask()} {
			profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[i], fleet.Hardware[i])
			fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Nth: 1, Effect: effect})
			tasks = append(tasks, a.begin(http.MethodPost, profilesPath, profile))
			fake.ClearFaults()
		}
		if got := a.get(tasks[2]); got.status != http.StatusNotFound {
			t.Errorf("forgotten task = %d, want 404", got.status)
		}
		time.Sleep(time.Hour)
		for i, want := range []string{"Running", "Running", "Running", "Completed"} {
			if got := a.get(tasks[0]).text1("taskState"); got != want {
				t.Errorf("slow task at request %d = %s, want %s", i, got, want)
			}
		}
		time.Sleep(1000 * time.Hour)
		a = login(t, fake) // the session has expired
		if got := a.get(tasks[1]); got.text1("taskState") != "Running" {
			t.Errorf("stuck task = %s", got.text)
		}
		if h := fake.HardwareAt(fleet.Hardware[2]); h.State != fakeoneview.ProfileApplied {
			t.Errorf("hardware of the forgotten task = %+v", h)
		}
	})
}

func TestFault_editsBodies(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{PageLimit: 2}
	fleet := fake.AddBlades(5)
	a := login(t, fake)
	fake.Inject(fakeoneview.Fault{Path: "^/rest/server-hardware$", Effect: fakeoneview.PageLoop()})
	if got := a.get("/rest/server-hardware?count=2"); got.text1("nextPageUri") != "/rest/server-hardware?count=2" {
		t.Errorf("next page = %q", got.text1("nextPageUri"))
	}
	fake.Inject(fakeoneview.Fault{Path: tasksPath, Effect: fakeoneview.TaskType("TaskResourceV4")})
	if got := a.create(fleet.TemplateURI, fleet.Hardware[0], "web"); got.text1("type") != "TaskResourceV4" {
		t.Errorf("task = %s", got.text)
	}
}

func TestFault_severalOnOneRequest(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
	for _, effect := range []fakeoneview.Effect{fakeoneview.FailApply(macTypeProblem(), false), fakeoneview.LoseAnswer()} {
		fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: postProfiles, Effect: effect})
	}
	if _, err := a.try(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")); err == nil {
		t.Error("the answer was not lost")
	}
	if h := fake.HardwareAt(fleet.Hardware[0]); h.State != fakeoneview.ProfileError {
		t.Errorf("hardware = %+v", h)
	}
}
