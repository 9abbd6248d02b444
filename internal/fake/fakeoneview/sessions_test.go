package fakeoneview_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

const loginPath = "/rest/login-sessions"

func TestSession_needsTheAccount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, domain string
		body         map[string]any
		want         string // errorCode; "" means success
	}{
		{"right", "", map[string]any{"userName": "ironic", "password": "secret"}, ""},
		{"right in LOCAL", "", map[string]any{"userName": "ironic", "password": "secret", "authLoginDomain": "local"}, ""},
		{"wrong password", "", map[string]any{"userName": "ironic", "password": "Secret"}, "AUTHN_AUTH_FAIL"},
		{"wrong user", "", map[string]any{"userName": "nova", "password": "secret"}, "AUTHN_AUTH_FAIL"},
		{"domain forgotten", "corp", map[string]any{"userName": "ironic", "password": "secret"}, "AUTHN_AUTH_FAIL"},
		{"right in a domain", "corp", map[string]any{"userName": "ironic", "password": "secret", "authLoginDomain": "CORP"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := &api{t: t, fake: &fakeoneview.Server{Username: "ironic", Password: "secret", Domain: tt.domain}, version: "300"}
			got := a.do(http.MethodPost, loginPath, tt.body)
			want := http.StatusOK
			if tt.want != "" {
				want = http.StatusBadRequest
			}
			if got.status != want || got.text1("errorCode") != tt.want || (got.text1("sessionID") == "") != (tt.want != "") {
				t.Errorf("login = %d %s, want %d %q", got.status, got.text, want, tt.want)
			}
		})
	}
}

func TestSession_loginMessageMustBeAcknowledged(t *testing.T) {
	t.Parallel()
	a := &api{t: t, fake: &fakeoneview.Server{LoginMessage: true}, version: "300"}
	got := a.do(http.MethodPost, loginPath, map[string]any{"userName": "ironic"})
	if got.text1("errorCode") != "AUTHN_LOGIN_MESSAGE_ACKNOWLEDGMENT_REQUIRED" {
		t.Errorf("login = %d %s", got.status, got.text)
	}
	if got := a.do(http.MethodPost, loginPath, map[string]any{"userName": "ironic", "loginMsgAck": true}); got.status != http.StatusOK {
		t.Errorf("acknowledging login = %d %s", got.status, got.text)
	}
}

func TestSession_isRequired(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	a := login(t, &fake)
	for _, token := range []string{"", "wrong"} {
		a.token = token
		got := a.get("/rest/server-hardware")
		if got.status != http.StatusUnauthorized || got.text1("errorCode") != "AUTHORIZATION" {
			t.Errorf("with token %q = %d %s, want 401 AUTHORIZATION", token, got.status, got.text)
		}
	}
}

func TestSession_endsAtLogout(t *testing.T) {
	t.Parallel()
	var fake fakeoneview.Server
	a := login(t, &fake)
	if got := a.do(http.MethodPut, loginPath, map[string]any{"sessionID": a.token}); got.status != http.StatusOK ||
		got.text1("sessionID") != a.token {
		t.Errorf("reconnect = %d %s", got.status, got.text)
	}
	if got := a.do(http.MethodDelete, loginPath, nil); got.status != http.StatusNoContent || got.text != "" {
		t.Errorf("logout = %d %q, want 204", got.status, got.text)
	}
	if n := fake.Sessions(); n != 0 {
		t.Errorf("%d sessions are open after the logout", n)
	}
	if got := a.get("/rest/tasks"); got.status != http.StatusUnauthorized {
		t.Errorf("GET after the logout = %d, want 401", got.status)
	}
	if got := a.do(http.MethodDelete, loginPath, nil); got.status != http.StatusBadRequest ||
		got.text1("errorCode") != "AUTHN_LOGOUT_FAILED" {
		t.Errorf("second logout = %d %s", got.status, got.text)
	}
	if got := a.do(http.MethodPut, loginPath, map[string]any{"sessionID": a.token}); got.status != http.StatusUnauthorized {
		t.Errorf("reconnect to a closed session = %d, want 401", got.status)
	}
}

func TestSession_endsAfterTheIdleTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeoneview.Server{IdleTimeout: time.Hour}
		a := login(t, fake)
		for range 3 {
			time.Sleep(59 * time.Minute)
			if got := a.get("/rest/tasks"); got.status != http.StatusOK {
				t.Fatalf("GET of a session in use = %d", got.status)
			}
		}
		time.Sleep(time.Hour)
		if got := a.get("/rest/tasks"); got.status != http.StatusUnauthorized {
			t.Errorf("GET after an idle hour = %d, want 401", got.status)
		}
	})
}

func TestSession_idleTimeoutCanBeShortened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fake fakeoneview.Server
		a := login(t, &fake)
		const path = "/rest/sessions/idle-timeout"
		ask := func(method string, body any) answer { return a.do(method, path, body) }
		if got := ask(http.MethodGet, nil); got.body["idleTimeout"] != 86400000.0 {
			t.Errorf("idle timeout = %s", got.text)
		}
		if got := ask(http.MethodPost, map[string]any{"idleTimeout": 86400001}); got.status != http.StatusBadRequest {
			t.Errorf("more than a day = %d, want 400", got.status)
		}
		if got := ask(http.MethodPost, map[string]any{"idleTimeout": 1000}); got.status != http.StatusOK {
			t.Errorf("a second = %d %s", got.status, got.text)
		}
		time.Sleep(time.Second)
		if got := ask(http.MethodGet, nil); got.status != http.StatusNotFound {
			t.Errorf("GET of an expired session = %d, want 404", got.status)
		}
	})
}

func TestSession_limit(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{SessionLimit: 2}
	a := login(t, fake)
	login(t, fake)
	if got := a.do(http.MethodPost, loginPath, map[string]any{"userName": "ironic"}); got.text1("errorCode") != "SESSION_CLIENT_LIMIT" {
		t.Errorf("third login = %d %s", got.status, got.text)
	}
	a.do(http.MethodDelete, loginPath, nil)
	login(t, fake)
	if n := fake.Sessions(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}
