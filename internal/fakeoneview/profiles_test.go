package fakeoneview_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

func TestAProfileIsCreatedAppliedAndDeleted(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(1)
	hardware := fleet.Hardware[0]
	a := login(t, &fake)

	task := a.create(fleet.TemplateURI, hardware, "web [1]")
	task.wantTask(t, fakeoneview.TaskCompleted, "")
	uri, _ := task.member("associatedResource", "resourceUri").(string)
	profile := a.get(uri)
	if profile.text1("state") != "Normal" || profile.text1("templateCompliance") != "Compliant" || profile.text1("serverHardwareUri") != hardware {
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

func TestATaskGoesThroughItsStatesWithTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeoneview.Server{StepTime: time.Minute}
		fleet := fake.AddBlades(1)
		a := login(t, fake)
		task := a.begin(http.MethodPost, "/rest/server-profiles", a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
		for _, want := range []struct {
			state    string
			percent  float64
			resource bool
			hardware string
			locked   bool
		}{
			{"New", 0, false, "NoProfileApplied", false},
			{"Starting", 0, false, "NoProfileApplied", false},
			{"Running", 50, true, "ApplyingProfile", true},
			{"Completed", 100, true, "ProfileApplied", false},
			{"Completed", 100, true, "ProfileApplied", false},
		} {
			got, hardware := a.get(task), a.get(fleet.Hardware[0])
			if got.text1("taskState") != want.state || got.body["percentComplete"] != want.percent ||
				(got.member("associatedResource", "resourceUri") != nil) != want.resource {
				t.Errorf("task = %s, want %+v", got.text, want)
			}
			if hardware.text1("state") != want.hardware || hardware.body["powerLock"] != want.locked {
				t.Errorf("hardware = %s, want %+v", hardware.text, want)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestTheProfileOfAnotherUserIsNotReplaced(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	fleet := fake.AddBlades(1)
	theirs := fake.TakeHardware(fleet.Hardware[0])
	a := login(t, &fake)
	task := a.create(fleet.TemplateURI, fleet.Hardware[0], "web")
	task.wantTask(t, fakeoneview.TaskError, "ProfileAlreadyExistsInServer")
	if task.member("associatedResource", "resourceUri") != nil || task.text1("stateReason") != "ValidationError" {
		t.Errorf("task = %s", task.text)
	}
	if all := fake.Profiles(); len(all) != 1 || all[0].URI != theirs || !all[0].Others {
		t.Errorf("profiles = %+v", all)
	}
}
