package fakeoneview_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// withProfile returns a fake with two blades and a profile on the first.
func withProfile(t *testing.T) (fake *fakeoneview.Server, a *api, fleet fakeoneview.Fleet, uri string) {
	t.Helper()
	fake = &fakeoneview.Server{}
	fleet = fake.AddBlades(2)
	a = login(t, fake)
	a.create(fleet.TemplateURI, fleet.Hardware[0], "web").wantTask(t, fakeoneview.TaskCompleted, "")
	return fake, a, fleet, fake.Profiles()[0].URI
}

func TestProfile_deleteNeedsTheETag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version, ifMatch string
		missing, want          int
	}{
		{"none, as Python's SDK", "1200", "", http.StatusOK, http.StatusAccepted},
		{"none", "1200", "", 0, http.StatusForbidden},
		{"none, answered otherwise", "1200", "", http.StatusPreconditionFailed, http.StatusPreconditionFailed},
		{"none before 500", "300", "", 0, http.StatusAccepted},
		{"stale", "1200", "1526058827348/42", 0, http.StatusPreconditionFailed},
		{"stale before 500", "300", "1526058827348/42", 0, http.StatusPreconditionFailed},
		{"any", "1200", "*", 0, http.StatusAccepted},
		{"right", "1200", "right", 0, http.StatusAccepted},
		{"right in quotes", "1200", `"right"`, 0, http.StatusAccepted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeoneview.Server{MissingIfMatch: tt.missing}
			uri := fake.AddProfile(fakeoneview.NewProfile{HardwareURI: fake.AddBlades(1).Hardware[0]})
			a := login(t, fake)
			a.version = tt.version
			a.ifMatch = strings.ReplaceAll(tt.ifMatch, "right", a.get(uri).text1("eTag"))
			if got := a.do(http.MethodDelete, uri, nil); got.status != tt.want {
				t.Errorf("DELETE = %d %s, want %d", got.status, got.text, tt.want)
			}
		})
	}
}

func TestProfile_deleteFailsWhileOn(t *testing.T) {
	t.Parallel()
	fake, a, fleet, uri := withProfile(t)
	fake.PowerOn(fleet.Hardware[0])
	a.ifMatch = "*"
	task := a.get(a.begin(http.MethodDelete, uri, nil))
	task.wantTask(t, fakeoneview.TaskError, "ServerHardwareIsPoweredOn")
	if got := a.get(uri); got.text1("state") != "Normal" || got.body["inProgress"] != false {
		t.Errorf("profile = %s", got.text)
	}
}

func TestProfile_plainConflictChangesNothing(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{PlainConflicts: true}
	fleet := fake.AddBlades(1)
	uri := fake.AddProfile(fakeoneview.NewProfile{HardwareURI: fleet.Hardware[0]})
	fake.PowerOn(fleet.Hardware[0])
	a := login(t, fake)
	a.ifMatch = "*"
	if got := a.do(http.MethodDelete, uri, nil); got.status != http.StatusConflict ||
		got.text1("errorCode") != "ServerHardwareIsPoweredOn" {
		t.Errorf("DELETE while it is on = %d %s, want 409", got.status, got.text)
	}
	if got := a.get(uri); got.body["inProgress"] != false || got.text1("state") != "Normal" || got.body["taskUri"] != nil {
		t.Errorf("profile = %s", got.text)
	}
	a.get(a.begin(http.MethodPut, fleet.Hardware[0]+"/powerState", power("Off", "PressAndHold")))
	a.get(a.begin(http.MethodDelete, uri, nil)).wantTask(t, fakeoneview.TaskCompleted, "")
}

func TestProfile_lockedDuringAnOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake, a, fleet := start(t, &fakeoneview.Server{StepTime: time.Second}, 1)
		a.begin(http.MethodPost, profilesPath, a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web"))
		time.Sleep(2 * time.Second)
		uri := fake.Profiles()[0].URI
		a.ifMatch = "*"
		current := a.get(uri)
		for method, body := range map[string]any{
			http.MethodDelete: nil, http.MethodPut: current.body, http.MethodPatch: patch("/refreshState", "RefreshPending"),
		} {
			if got := a.do(method, uri, body); got.status != http.StatusConflict {
				t.Errorf("%s = %d %s, want 409", method, got.status, got.text)
			}
		}
		if current.text1("state") != "Creating" || current.body["inProgress"] != true || current.body["taskUri"] == nil {
			t.Errorf("profile = %s", current.text)
		}
	})
}

func TestProfile_putNeedsTheETag(t *testing.T) {
	t.Parallel()
	fake, a, _, uri := withProfile(t)
	mine := a.get(uri).body
	mine["name"] = "web-2"
	fake.EditProfile(uri, func(p map[string]any) { p["description"] = "theirs" })
	if got := a.do(http.MethodPut, uri, mine); got.status != http.StatusPreconditionFailed {
		t.Errorf("PUT of a stale profile = %d, want 412", got.status)
	}
	delete(mine, "eTag")
	if got := a.do(http.MethodPut, uri, mine); got.status != http.StatusForbidden {
		t.Errorf("PUT without eTag = %d, want 403", got.status)
	}
	mine = a.get(uri).body
	mine["name"] = "web-2"
	a.get(a.begin(http.MethodPut, uri, mine)).wantTask(t, fakeoneview.TaskCompleted, "")
	if got := a.get(uri); got.text1("name") != "web-2" || got.text1("description") != "theirs" || got.text1("eTag") == mine["eTag"] {
		t.Errorf("profile = %s", got.text)
	}
}

func TestProfile_fixedFields(t *testing.T) {
	t.Parallel()
	_, a, _, uri := withProfile(t)
	for _, key := range []string{"macType", "wwnType", "serialNumberType"} {
		profile := a.get(uri).body
		profile[key] = "Virtual"
		if got := a.do(http.MethodPut, uri, profile); got.status != http.StatusBadRequest {
			t.Errorf("PUT with another %s = %d, want 400", key, got.status)
		}
	}
}

func TestProfile_onlyConnectionsChangeWhileOn(t *testing.T) {
	t.Parallel()
	fake, a, fleet, uri := withProfile(t)
	fake.PowerOn(fleet.Hardware[0])
	profile := a.get(uri).body
	part(t, profile, "connectionSettings")["connections"] = []any{}
	a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskCompleted, "")

	profile = a.get(uri).body
	part(t, profile, "boot")["order"] = []any{"HardDisk", "PXE"}
	task := a.get(a.begin(http.MethodPut, uri, profile))
	task.wantTask(t, fakeoneview.TaskError, "ServerNotOffWithCauseForNoServerChange")
	if task.text1("taskStatus") != "Unable to edit server profile: web." || !strings.Contains(task.text, "* boot") {
		t.Errorf("task = %s", task.text)
	}
	fake.EditHardware(fleet.Hardware[0], func(h *fakeoneview.Hardware) { h.Power = fakeoneview.Off })
	a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskCompleted, "")
}

func TestProfile_movesBetweenServers(t *testing.T) {
	t.Parallel()
	fake, a, fleet, uri := withProfile(t)
	for _, target := range []any{fleet.Hardware[1], nil, fleet.Hardware[0]} {
		profile := a.get(uri).body
		profile["serverHardwareUri"] = target
		a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskCompleted, "")
		for _, h := range fake.Hardware() {
			want := fakeoneview.Hardware{State: fakeoneview.NoProfileApplied}
			if h.URI == target {
				want = fakeoneview.Hardware{State: fakeoneview.ProfileApplied, ProfileURI: uri}
			}
			if h.State != want.State || h.ProfileURI != want.ProfileURI || h.PowerLock {
				t.Errorf("with the profile on %v, hardware = %+v", target, h)
			}
		}
	}
	profile := a.get(uri).body
	profile["serverHardwareUri"] = fleet.Hardware[1]
	fake.PowerOn(fleet.Hardware[0])
	a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskError, "ServerNotOffWithCauseForNoServerChange")
	fake.TakeHardware(fleet.Hardware[1])
	a.get(a.begin(http.MethodPut, uri, profile)).wantTask(t, fakeoneview.TaskError, "ProfileAlreadyExistsInServer")
}

func patch(path, value string) []map[string]any {
	return []map[string]any{{"op": "replace", "path": path, "value": value}}
}

func TestProfile_becomesCompliant(t *testing.T) {
	t.Parallel()
	fake, a, fleet, uri := withProfile(t)
	fake.EditTemplate(fleet.TemplateURI, func(document map[string]any) {
		document["bootMode"] = map[string]any{"manageMode": true, "mode": "UEFIOptimized"}
	})
	if got := a.get(uri).text1("templateCompliance"); got != "NonCompliant" {
		t.Errorf("compliance = %s, want NonCompliant", got)
	}
	preview := a.get(uri + "/compliance-preview")
	if preview.body["isOnlineUpdate"] != false || !strings.Contains(preview.text, "bootMode") {
		t.Errorf("preview = %s", preview.text)
	}
	fake.PowerOn(fleet.Hardware[0])
	a.get(a.begin(http.MethodPatch, uri, patch("/templateCompliance", "Compliant"))).wantTask(t, fakeoneview.TaskError,
		"ServerNotOffWithCauseForNoServerChange")
	fake.EditHardware(fleet.Hardware[0], func(h *fakeoneview.Hardware) { h.Power = fakeoneview.Off })
	a.get(a.begin(http.MethodPatch, uri, patch("/templateCompliance", "Compliant"))).wantTask(t, fakeoneview.TaskCompleted, "")
	if got := a.get(uri).text1("templateCompliance"); got != "Compliant" {
		t.Errorf("compliance = %s, want Compliant", got)
	}
	if preview := a.get(uri + "/compliance-preview"); preview.body["isOnlineUpdate"] != true {
		t.Errorf("preview = %s", preview.text)
	}
}

func TestProfile_patchIsOneOperation(t *testing.T) {
	t.Parallel()
	fake, a, _, uri := withProfile(t)
	for _, known := range [][]map[string]any{
		patch("/refreshState", "RefreshPending"), patch("/connectionSettings/reapplyState", "ApplyPending"),
		patch("/serverHardwareReapplyState", "ApplyPending"),
	} {
		a.get(a.begin(http.MethodPatch, uri, known)).wantTask(t, fakeoneview.TaskCompleted, "")
	}
	for _, unknown := range []any{
		patch("/name", "web-2"), patch("/templateCompliance", "Perfect"),
		[]any{},
		map[string]any{},
		"no JSON",
		append(patch("/refreshState", "RefreshPending"), patch("/refreshState", "RefreshPending")...),
	} {
		if got := a.do(http.MethodPatch, uri, unknown); got.status != http.StatusBadRequest {
			t.Errorf("PATCH %v = %d, want 400", unknown, got.status)
		}
	}
	fake.EditProfile(uri, func(map[string]any) {})
	a.ifMatch = "1526058827348/42"
	if got := a.do(http.MethodPatch, uri, patch("/refreshState", "RefreshPending")); got.status != http.StatusPreconditionFailed {
		t.Errorf("PATCH of a stale profile = %d, want 412", got.status)
	}
}

func TestProfile_deleteOfTheCollection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query string
		left  int
	}{{"", 0}, {`?filter="name matches 'a%25'"`, 1}} {
		var fake fakeoneview.Server
		fleet := fake.AddBlades(3)
		for i, name := range []string{"a1", "a2", "b"} {
			fake.AddProfile(fakeoneview.NewProfile{Name: name, HardwareURI: fleet.Hardware[i]})
		}
		a := login(t, &fake)
		a.get(a.begin(http.MethodDelete, profilesPath+tt.query, nil)).wantTask(t, fakeoneview.TaskCompleted, "")
		if got := fake.Profiles(); len(got) != tt.left {
			t.Errorf("%d profiles are left after DELETE%s, want %d", len(got), tt.query, tt.left)
		}
	}
}

func TestProfile_withoutServerNeedsTypeAndGroup(t *testing.T) {
	t.Parallel()
	fake, a, fleet := start(t, &fakeoneview.Server{}, 1)
	profile := a.newProfile(fleet.TemplateURI, "", "spare")
	a.get(a.begin(http.MethodPost, profilesPath, profile)).wantTask(t, fakeoneview.TaskCompleted, "")
	if got := fmt.Sprint(a.get(fake.Profiles()[0].URI).body["serverHardwareUri"]); got != "<nil>" {
		t.Errorf("serverHardwareUri = %s", got)
	}
}

func part(t *testing.T, of map[string]any, name string) map[string]any {
	t.Helper()
	object, ok := of[name].(map[string]any)
	if !ok {
		t.Fatalf("%s is %v", name, of[name])
	}
	return object
}
