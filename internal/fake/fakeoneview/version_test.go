package fakeoneview_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

func TestVersion_mustBeInRange(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{CurrentVersion: 2000, MinimumVersion: 500}
	for _, tt := range []struct {
		version string
		want    int
	}{
		{"", http.StatusNotFound},
		{"1", http.StatusPreconditionFailed},
		{"499", http.StatusPreconditionFailed},
		{"500", http.StatusUnauthorized},
		{"2000", http.StatusUnauthorized},
		{"2001", http.StatusPreconditionFailed},
		{"latest", http.StatusPreconditionFailed},
	} {
		a := &api{t: t, fake: fake, version: tt.version}
		if got := a.get("/rest/server-hardware"); got.status != tt.want {
			t.Errorf("X-API-Version %q = %d %s, want %d", tt.version, got.status, got.text, tt.want)
		}
	}
	got := (&api{t: t, fake: fake}).get("/rest/version")
	if got.body["currentVersion"] != 2000.0 || got.body["minimumVersion"] != 500.0 {
		t.Errorf("version without header and session = %d %s", got.status, got.text)
	}
	if got := (&api{t: t, fake: fake}).do(http.MethodPost, loginPath, map[string]any{}); got.status != http.StatusNotFound {
		t.Errorf("login without a version = %d, want 404", got.status)
	}
}

func TestVersion_selectsTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ version, profile, template, hardware, connections string }{
		{"200", "ServerProfileV5", "ServerProfileTemplateV1", "server-hardware-3", "flat flat"},
		{"300", "ServerProfileV6", "ServerProfileTemplateV2", "server-hardware-5", "flat flat"},
		{"500", "ServerProfileV7", "ServerProfileTemplateV3", "server-hardware-5", "flat nested"},
		{"600", "ServerProfileV8", "ServerProfileTemplateV4", "server-hardware-5", "nested nested"},
		{"1000", "ServerProfileV10", "ServerProfileTemplateV6", "server-hardware-5", "nested nested"},
		{"1600", "ServerProfileV12", "ServerProfileTemplateV8", "server-hardware-5", "nested nested"},
		{"8600", "ServerProfileV12", "ServerProfileTemplateV8", "server-hardware-5", "nested nested"},
	} {
		t.Run(tt.version, func(t *testing.T) {
			t.Parallel()
			fake := &fakeoneview.Server{MinimumVersion: 200}
			fleet := fake.AddBlades(1)
			a := login(t, fake)
			a.version = tt.version
			a.create(fleet.TemplateURI, fleet.Hardware[0], "web").wantTask(t, fakeoneview.TaskCompleted, "")
			profile, template := a.get(fake.Profiles()[0].URI), a.get(fleet.TemplateURI)
			hardware := a.get(fleet.Hardware[0])
			got := []string{profile.text1("type"), template.text1("type"), hardware.text1("type"), form(profile) + " " + form(template)}
			want := []string{tt.profile, tt.template, tt.hardware, tt.connections}
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				t.Errorf("got %v, want %v", got, want)
			}
			if profile.text1("templateCompliance") != "Compliant" {
				t.Errorf("compliance = %s", profile.text1("templateCompliance"))
			}
		})
	}
}

// form says whether the connections of a document are flat (connections) or nested (connectionSettings.connections).
func form(a answer) string {
	_, flat := a.body["connections"].([]any)
	_, nested := a.member("connectionSettings", "connections").([]any)
	switch {
	case flat && !nested:
		return "flat"
	case nested && !flat:
		return "nested"
	}
	return "neither"
}

func TestVersion_wrongTypeIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		version, profileType, want string
	}{
		{"1200", "ServerProfileV9", `The "type" field content, "ServerProfileV9", included in this request is not valid.`},
		{"1200", "", `The "type" field content, "", included in this request is not valid.`},
		{"1600", "", ""},
		{"1200", "ServerProfileV11", ""},
	} {
		_, a, fleet := start(t, &fakeoneview.Server{}, 1)
		a.version = tt.version
		profile := a.newProfile(fleet.TemplateURI, fleet.Hardware[0], "web")
		profile["type"] = tt.profileType
		got := a.do(http.MethodPost, "/rest/server-profiles", profile)
		if (got.status == http.StatusAccepted) != (tt.want == "") || (tt.want != "" && got.text1("message") != tt.want) {
			t.Errorf("type %q in version %s = %d %s, want %q", tt.profileType, tt.version, got.status, got.text, tt.want)
		}
	}
}

func TestServer_contentTypeIsRequired(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	for _, tt := range []struct {
		method, contentType string
		want                int
	}{
		{http.MethodPost, "", http.StatusUnsupportedMediaType},
		{http.MethodPost, "text/plain", http.StatusUnsupportedMediaType},
		{http.MethodPost, "application/json; charset=utf-8", http.StatusOK},
		{http.MethodPatch, "text/plain", http.StatusUnsupportedMediaType},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, "https://oneview"+loginPath, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-API-Version", "300")
		request.Header.Set("Content-Type", tt.contentType)
		response, err := fake.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != tt.want {
			t.Errorf("%s with content type %q = %d, want %d", tt.method, tt.contentType, response.StatusCode, tt.want)
		}
	}
}

func TestServer_unknownPathsAnswer404(t *testing.T) {
	t.Parallel()
	_, a, fleet := start(t, &fakeoneview.Server{}, 1)
	for _, path := range []string{
		"/", "/rest", "/rest/nothing", "/rest/server-hardware/0", fleet.Hardware[0] + "/nothing", "/rest/server-profile-templates/0",
		fleet.TemplateURI + "/nothing", fleet.TemplateURI + "//new-profile", "/rest/server-profiles/0",
		"/rest/server-profiles/0/compliance-preview", "/rest/tasks/0",
		"/rest/enclosure-groups/0", "/rest/sessions/nothing",
	} {
		if got := a.get(path); got.status != http.StatusNotFound || got.text1("errorCode") == "" {
			t.Errorf("GET %s = %d %s, want 404", path, got.status, got.text)
		}
	}
	for path, method := range map[string]string{
		fleet.Hardware[0]: http.MethodPost, fleet.Hardware[0] + "/powerState": http.MethodPost, fleet.TemplateURI: http.MethodPost,
		"/rest/server-hardware": http.MethodPut, "/rest/tasks": http.MethodDelete, "/rest/enclosure-groups": http.MethodPost,
	} {
		if got := a.do(method, path, map[string]any{}); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s %s = %d, want 405", method, path, got.status)
		}
	}
}
