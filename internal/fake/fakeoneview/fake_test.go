package fakeoneview_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// api sends requests to a fake without a socket.
type api struct {
	t       *testing.T
	fake    *fakeoneview.Server
	version string
	token   string
	ifMatch string

	patchType string // Content-Type of a PATCH; "" is that of JSON patches
}

type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func login(t *testing.T, fake *fakeoneview.Server) *api {
	t.Helper()
	a := &api{t: t, fake: fake, version: "1200"}
	a.token = a.do(http.MethodPost, "/rest/login-sessions", map[string]any{"userName": "ironic", "password": "secret"}).text1("sessionID")
	return a
}

// start makes a server with blades, and opens a session.
func start(t *testing.T, fake *fakeoneview.Server, blades int) (*fakeoneview.Server, *api, fakeoneview.Fleet) {
	t.Helper()
	fleet := fake.AddBlades(blades)
	return fake, login(t, fake), fleet
}

// text1 returns a string member of the body.
func (a answer) text1(key string) string {
	value, _ := a.body[key].(string)
	return value
}

// member returns the value at a path of keys in the body.
func (a answer) member(keys ...string) any {
	var value any = a.body
	for _, key := range keys {
		inner, _ := value.(map[string]any)
		value = inner[key]
	}
	return value
}

// do sends a request; body is a Go value to encode, or a string with JSON.
func (a *api) do(method, path string, body any) answer {
	a.t.Helper()
	got, err := a.try(method, path, body)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

func (a *api) try(method, path string, body any) (answer, error) {
	a.t.Helper()
	raw := ""
	if given, ok := body.(string); ok {
		raw = given
	} else if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			a.t.Fatal(err)
		}
		raw = string(encoded)
	}
	request, err := http.NewRequestWithContext(a.t.Context(), method, "https://oneview"+strings.ReplaceAll(path, " ", "%20"),
		strings.NewReader(raw))
	if err != nil {
		a.t.Fatal(err)
	}
	if a.version != "" {
		request.Header.Set("X-API-Version", a.version)
	}
	if a.token != "" {
		request.Header.Set("auth", a.token)
		request.Header.Set("Session-ID", a.token) // only the path idle-timeout uses it
	}
	if a.ifMatch != "" {
		request.Header.Set("If-Match", a.ifMatch)
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", cmp.Or(a.patchType, "application/json-patch+json"))
	}
	response, err := a.fake.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	got := answer{status: response.StatusCode, header: response.Header, text: string(content)}
	if len(content) > 0 && content[0] == '{' {
		if err := json.Unmarshal(content, &got.body); err != nil {
			a.t.Fatalf("%s %s: %v in %s", method, path, err, content)
		}
	}
	return got, nil
}

func (a *api) get(path string) answer {
	a.t.Helper()
	return a.do(http.MethodGet, path, nil)
}

// newProfile returns the body of a POST: the template's new-profile with a name and hardware.
func (a *api) newProfile(templateURI, hardwareURI, name string) map[string]any {
	a.t.Helper()
	profile := a.get(templateURI + "/new-profile").body
	profile["name"], profile["serverHardwareUri"] = name, hardwareURI
	return profile
}

// begin sends a request, fails the test unless the answer is 202, and returns the URI of the task.
func (a *api) begin(method, path string, body any) string {
	a.t.Helper()
	got := a.do(method, path, body)
	if got.status != http.StatusAccepted || got.header.Get("Location") == "" {
		a.t.Fatalf("%s %s: %d %s, want 202 with a Location", method, path, got.status, got.text)
	}
	return got.header.Get("Location")
}

// create creates a profile and returns the task, which must have ended by the next request.
func (a *api) create(templateURI, hardwareURI, name string) answer {
	a.t.Helper()
	return a.get(a.begin(http.MethodPost, "/rest/server-profiles", a.newProfile(templateURI, hardwareURI, name)))
}

// await polls a task until it ends. While a hook of another request runs, that can take several requests.
func (a *api) await(task string) answer {
	a.t.Helper()
	for {
		if got := a.get(task); got.body["percentComplete"] == 100.0 {
			return got
		}
		runtime.Gosched()
	}
}

// errorCode returns the code of a task's first error.
func (a answer) errorCode() string {
	problems, _ := a.body["taskErrors"].([]any)
	if len(problems) == 0 {
		return ""
	}
	first, _ := problems[0].(map[string]any)
	code, _ := first["errorCode"].(string)
	return code
}

// wantTask fails the test unless a task has the state and error code.
func (a answer) wantTask(t *testing.T, state fakeoneview.TaskState, code string) {
	t.Helper()
	if a.text1("taskState") != string(state) || a.errorCode() != code {
		t.Errorf("task = %s %q, want %s %q: %s", a.text1("taskState"), a.errorCode(), state, code, a.text)
	}
}
