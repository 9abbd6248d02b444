package fakeoneview_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

const profilesPath = "/rest/server-profiles"

func TestProfile_lifeCycle(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(1)
	hardware := fleet.Hardware[0]
	a := login(t, &fake)

	task := a.create(fleet.TemplateURI, hardware, "web [1]")
	task.wantTask(t, fakeoneview.TaskCompleted, "")
	uri, _ := task.member("associatedResource", "resourceUri").(string)
	profile := a.get(uri)
	if profile.text1("state") != "Normal" || profile.text1("templateCompliance") != "Compliant" ||
		profile.text1("serverHardwareUri") != hardware {
		t.Errorf("profile = %s", profile.text)
	}
	if got := a.get(hardware); got.text1("serverProfileUri") != uri || got.text1("state") != "ProfileApplied" {
		t.Errorf("hardware = %s", got.text)
	}

	a.ifMatch = profile.text1("eTag")
	a.get(a.begin(http.MethodDelete, uri, nil)).wantTask(t, fakeoneview.TaskCompleted, "")
	if got := a.get(uri); got.status != http.StatusNotFound || got.text1("errorCode") != "ProfileNotFoundException" {
		t.Errorf("GET of the deleted profile = %d %s", got.status, got.text)
	}
	if got := a.get(hardware); got.member("serverProfileUri") != nil || got.text1("state") != "NoProfileApplied" {
		t.Errorf("hardware after the delete = %s", got.text)
	}
	if got := a.do(http.MethodDelete, uri, nil); got.status != http.StatusNotFound {
		t.Errorf("second DELETE = %d", got.status)
	}
	if harm := fake.Harm(); len(harm) > 0 {
		t.Errorf("harm = %v", harm)
	}
}

func TestTask_statesByTheClock(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fake := &fakeoneview.Server{StepTime: time.Minute, LateProfileURI: late}
			fleet := fake.AddBlades(1)
			a := login(t, fake)
			task := a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
			for _, want := range []struct {
				state    string
				percent  float64
				resource bool
				hardware string
				locked   bool
				held     bool
			}{
				{"New", 0, false, "NoProfileApplied", false, false},
				{"Starting", 0, false, "NoProfileApplied", false, false},
				{"Running", 50, true, "ApplyingProfile", true, !late},
				{"Completed", 100, true, "ProfileApplied", false, true},
				{"Completed", 100, true, "ProfileApplied", false, true},
			} {
				got, hardware := a.get(task), a.get(fleet.Hardware[0])
				if got.text1("taskState") != want.state || got.body["percentComplete"] != want.percent ||
					(got.member("associatedResource", "resourceUri") != nil) != want.resource {
					t.Errorf("task = %s, want %+v", got.text, want)
				}
				if hardware.text1("state") != want.hardware || hardware.body["powerLock"] != want.locked ||
					(hardware.body["serverProfileUri"] != nil) != want.held {
					t.Errorf("hardware = %s, want %+v", hardware.text, want)
				}
				time.Sleep(time.Minute)
			}
		})
	}
}

// invalidProfile is a profile that fails its task, with the error code.
type invalidProfile struct {
	name          string
	spoil         func(fake *fakeoneview.Server, fleet fakeoneview.Fleet)
	change        func(profile map[string]any)
	code, message string
}

func invalidProfiles() []invalidProfile {
	on := func(fake *fakeoneview.Server, fleet fakeoneview.Fleet) { fake.PowerOn(fleet.Hardware[0]) }
	taken := func(fake *fakeoneview.Server, fleet fakeoneview.Fleet) { fake.TakeHardware(fleet.Hardware[0]) }
	sick := func(fake *fakeoneview.Server, fleet fakeoneview.Fleet) {
		fake.EditHardware(fleet.Hardware[0], func(h *fakeoneview.Hardware) { h.Status = fakeoneview.Critical })
	}
	double := func(fake *fakeoneview.Server, fleet fakeoneview.Fleet) {
		fake.AddProfile(fakeoneview.NewProfile{Name: "WEB", HardwareURI: fleet.Hardware[1]})
	}
	return []invalidProfile{
		{
			"taken", taken, nil, "ProfileAlreadyExistsInServer",
			`A profile is already assigned to the server hardware {"name":"Encl1, bay 1", "uri":"/rest/server-hardware/`,
		},
		{"on", on, nil, "ServerHardwareIsPoweredOn", "is powered on"},
		{"name in use", double, nil, "ProfileNameAlreadyExists", "already exists"},
		{"not healthy", sick, nil, "ServerHardwareStatusNotOK", `The selected server hardware has health status other than "OK"`},
		{"other type", nil, func(p map[string]any) {
			p["serverHardwareTypeUri"] = "/rest/server-hardware-types/X"
		}, "ServerHardwareTypeMismatch", "type"},
		{"other group", nil, func(p map[string]any) {
			p["enclosureGroupUri"] = "/rest/enclosure-groups/X"
		}, "EnclosureGroupMismatch", "group"},
	}
}

func TestProfile_misfitFailsTheTask(t *testing.T) {
	t.Parallel()
	for _, tt := range invalidProfiles() {
		for _, plain := range []bool{false, true} {
			fake := &fakeoneview.Server{PlainConflicts: plain}
			fleet := fake.AddBlades(2)
			if tt.spoil != nil {
				tt.spoil(fake, fleet)
			}
			before := len(fake.Profiles())
			a := login(t, fake)
			profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")
			if tt.change != nil {
				tt.change(profile)
			}
			if plain {
				if got := a.do(http.MethodPost, profilesPath, profile); got.status != http.StatusConflict ||
					got.text1("errorCode") != tt.code {
					t.Errorf("%s: %d %s, want 409 %s", tt.name, got.status, got.text, tt.code)
				}
			} else {
				task := a.get(a.begin(http.MethodPost, profilesPath, profile))
				task.wantTask(t, fakeoneview.TaskError, tt.code)
				if task.member("associatedResource", "resourceUri") != nil || task.text1("stateReason") != "ValidationError" ||
					task.text1("taskStatus") != "Unable to create server profile: web" || task.body["hidden"] != true {
					t.Errorf("%s: task = %s", tt.name, task.text)
				}
				if problems, _ := task.body["taskErrors"].([]any); len(problems) != 1 ||
					!strings.Contains(fmt.Sprint(problems[0]), tt.message) {
					t.Errorf("%s: errors = %v, want %q", tt.name, problems, tt.message)
				}
			}
			if got := len(fake.Profiles()); got != before {
				t.Errorf("%s: %d profiles, want %d", tt.name, got, before)
			}
		}
	}
}

func TestProfile_forceIgnoresHealth(t *testing.T) {
	t.Parallel()
	for _, force := range []string{"all", "ignoreServerHealth", "ignoreSANWarnings,ignoreServerHealth"} {
		var fake fakeoneview.Server
		fleet := fake.AddBlades(1)
		fake.EditHardware(fleet.Hardware[0], func(h *fakeoneview.Hardware) { h.Status = fakeoneview.Warning })
		a := login(t, &fake)
		task := a.begin(http.MethodPost, profilesPath+"?force="+force, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
		a.get(task).wantTask(t, fakeoneview.TaskCompleted, "")
	}
}

func TestProfile_invalidIsRefused(t *testing.T) {
	t.Parallel()
	_, a, fleet := start(t, &fakeoneview.Server{}, 1)
	for field, value := range map[string]any{
		"name": " ", "serverHardwareUri": "/rest/server-hardware/X", "serverProfileTemplateUri": "/rest/server-profile-templates/X",
	} {
		profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")
		profile[field] = value
		if got := a.do(http.MethodPost, profilesPath, profile); got.status != http.StatusBadRequest {
			t.Errorf("POST with %s %q = %d, want 400", field, value, got.status)
		}
	}
	got := a.do(http.MethodPost, profilesPath, map[string]any{"type": "ServerProfileV11", "name": "web"})
	if got.status != http.StatusBadRequest {
		t.Errorf("POST without hardware and type = %d, want 400", got.status)
	}
	if got := a.do(http.MethodPost, profilesPath, "[]"); got.status != http.StatusBadRequest {
		t.Errorf("POST of an array = %d, want 400", got.status)
	}
}

func TestProfile_onlyNewProfileHasTheTemplatesSections(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 2)
	draft := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "whole")
	for _, key := range []string{"uri", "serialNumber", "uuid", "enclosureUri", "enclosureBay", "taskUri", "created", "modified"} {
		if value, there := draft[key]; value != nil || !there {
			t.Errorf("%s of a new profile = %v", key, value)
		}
	}
	if draft["state"] != "Creating" || draft["status"] != "OK" || draft["inProgress"] != false ||
		draft["templateCompliance"] != "Unknown" || draft["serverProfileTemplateUri"] != fleet.TemplateURI {
		t.Errorf("new profile = %v", draft)
	}
	task := a.get(a.begin(http.MethodPost, profilesPath, map[string]any{
		"type": "ServerProfileV11", "name": "bare", "serverProfileTemplateUri": fleet.TemplateURI, "serverHardwareUri": fleet.Hardware[1],
	}))
	task.wantTask(t, fakeoneview.TaskCompleted, "")
	bare := a.get(fake.Profiles()[0].URI)
	if bare.body["connectionSettings"] != nil || bare.text1("templateCompliance") != "NonCompliant" {
		t.Errorf("profile without sections = %s", bare.text)
	}
}

func TestProfile_unlinkedHasNoCompliance(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
	profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")
	profile["serverProfileTemplateUri"] = ""
	a.get(a.begin(http.MethodPost, profilesPath, profile)).wantTask(t, fakeoneview.TaskCompleted, "")
	got := a.get(fake.Profiles()[0].URI)
	if got.body["serverProfileTemplateUri"] != nil || got.text1("templateCompliance") != "Unknown" {
		t.Errorf("profile = %s", got.text)
	}
	if preview := a.get(fake.Profiles()[0].URI + "/compliance-preview"); preview.status != http.StatusBadRequest {
		t.Errorf("preview = %d, want 400", preview.status)
	}
}

func TestProfile_firstOfTwoGetsTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, a, fleet := start(t, &fakeoneview.Server{StepTime: time.Second}, 1)
		first := a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "first"))
		second := a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "second"))
		time.Sleep(3 * time.Second)
		a.get(first).wantTask(t, fakeoneview.TaskCompleted, "")
		a.get(second).wantTask(t, fakeoneview.TaskError, "ProfileAlreadyExistsInServer")
	})
}

func TestProfile_oneOfManyGetsTheServer(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(1)
	var clients sync.WaitGroup
	var mu sync.Mutex
	var ends []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		a := login(t, &fake)
		clients.Go(func() {
			task := a.create(fleet.TemplateURI, fleet.Hardware[0], name)
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, task.text1("taskState")+task.errorCode())
		})
	}
	clients.Wait()
	if got := strings.Count(strings.Join(ends, " "), "Completed"); got != 1 || len(fake.Profiles()) != 1 {
		t.Errorf("ends = %v, profiles = %+v", ends, fake.Profiles())
	}
	if got := strings.Count(strings.Join(ends, " "), "ErrorProfileAlreadyExistsInServer"); got != 4 {
		t.Errorf("ends = %v", ends)
	}
}
