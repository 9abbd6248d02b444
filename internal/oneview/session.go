package oneview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// Limits of the login.
const (
	// firstPatience is how long the client waits for an appliance that has not answered yet. It is short, because the address may be
	// wrong.
	firstPatience = 15 * time.Second
	// refusalHolds is how long the client returns the last error instead of logging in again. After a refused login, further failures could
	// lock the account. Without an answer, each of many hosts would wait for the same address.
	refusalHolds = time.Minute
)

// session is the one session that all users of a Client share.
type session struct {
	busy    chan struct{} // contains an element while a goroutine uses the fields below
	token   string
	version int // X-API-Version; zero: not known yet

	refusal   error // of the last login; nil if it was accepted
	refusedAt time.Time
}

// refused returns the error of the last login, if it failed within refusalHolds; else nil.
func (s *session) refused() error {
	if s.refusal != nil && time.Since(s.refusedAt) < refusalHolds {
		return s.refusal
	}
	return nil
}

func (s *session) refuse(err error) { s.refusal, s.refusedAt = err, time.Now() }

// lock waits until no other goroutine uses the session, and reserves it until unlock is called. It fails if ctx ends first.
func (s *session) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.busy <- struct{}{}:
		return func() { <-s.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// login returns the token of the session and the version of the API. It logs in if there is no session, or if its token equals ended.
// If several goroutines call it at once, only one logs in.
func (c *Client) login(ctx context.Context, ended string) (token string, version int, err error) {
	if err := c.cfg.known(); err != nil {
		return "", 0, err
	}
	unlock, err := c.session.lock(ctx)
	if err != nil {
		return "", 0, err
	}
	defer unlock()
	s := &c.session
	if s.version == 0 {
		if err := s.refused(); err != nil {
			return "", 0, err
		}
		if err := c.negotiate(ctx); err != nil {
			return "", 0, err
		}
	}
	if s.token != "" && s.token != ended {
		return s.token, s.version, nil
	}
	if err := s.refused(); err != nil {
		return "", 0, err
	}
	if s.token != "" {
		// The session may still be open, and an appliance limits the number of open sessions.
		_ = c.logout(ctx)
	}
	s.token, err = c.newSession(ctx)
	if err != nil {
		if fault.Is(err, KindLogin) {
			s.refuse(err)
		}
		return "", 0, err
	}
	s.refusal = nil
	return s.token, s.version, nil
}

func (c *Client) negotiate(ctx context.Context) error {
	var spoken struct {
		CurrentVersion int `json:"currentVersion"`
		MinimumVersion int `json:"minimumVersion"`
	}
	ask := func() error {
		got, err := c.exchange(ctx, request{method: http.MethodGet, path: "/rest/version"}, "", 0)
		if err != nil {
			return err
		}
		return got.into(&spoken)
	}
	err := c.persist(ctx, min(c.Patience(), firstPatience), ask)
	if IsTransient(err) && isFromAppliance(err) {
		err = c.persist(ctx, c.Patience()-firstPatience, ask)
	}
	if err != nil && ctx.Err() == nil {
		err = &fault.Error{Kind: kindUnanswered, Fact: err.Error(), Err: err}
		c.session.refuse(err)
	}
	if err != nil {
		return err
	}
	version := min(spoken.CurrentVersion, testedVersion)
	if c.cfg.APIVersion != 0 {
		version = min(version, c.cfg.APIVersion)
	}
	if version < max(spoken.MinimumVersion, oldestVersion) {
		ours := fmt.Sprintf("this program supports %d to %d", oldestVersion, testedVersion)
		if c.cfg.APIVersion != 0 {
			ours = fmt.Sprintf("%s allows none above %d", c.cfg.called("api_version"), c.cfg.APIVersion)
		}
		return &fault.Error{
			Kind: KindVersion,
			Fact: fmt.Sprintf("the OneView appliance supports versions %d to %d of its API, but %s", spoken.MinimumVersion,
				spoken.CurrentVersion, ours),
		}
	}
	c.session.version = version
	return nil
}

// newSession logs in and returns the token of the session.
func (c *Client) newSession(ctx context.Context) (token string, err error) {
	body := map[string]any{"userName": c.cfg.Username, "password": c.cfg.Password, "loginMsgAck": true}
	if c.cfg.Domain != "" {
		body["authLoginDomain"] = c.cfg.Domain
	}
	var opened struct {
		SessionID string `json:"sessionID"`
	}
	err = c.persist(ctx, c.Patience(), func() error {
		got, err := c.exchange(ctx, request{method: http.MethodPost, path: "/rest/login-sessions", body: body}, "", c.session.version)
		if err != nil {
			return err
		}
		return got.into(&opened)
	})
	if refused, ok := errors.AsType[*StatusError](err); ok && refused.Status < http.StatusInternalServerError && !IsTransient(err) {
		user := c.cfg.Username
		if c.cfg.Domain != "" {
			user += " of domain " + c.cfg.Domain
		}
		return "", &fault.Error{
			Kind: KindLogin, Err: err,
			Fact: fmt.Sprintf("log in to OneView as %s: %s. Check username, password and domain", user,
				strings.TrimSuffix(err.Error(), ".")),
		}
	}
	if err != nil {
		return "", fmt.Errorf("log in: %w", err)
	}
	if opened.SessionID == "" {
		return "", fmt.Errorf("log in: the answer of OneView at %s has no session", c.base.Host)
	}
	return opened.SessionID, nil
}

// logout ends the session on the appliance and forgets it.
func (c *Client) logout(ctx context.Context) error {
	token := c.session.token
	c.session.token = ""
	_, err := c.exchange(ctx, request{method: http.MethodDelete, path: "/rest/login-sessions"}, token, c.session.version)
	if refused, ok := errors.AsType[*StatusError](err); ok && refused.Status < http.StatusInternalServerError {
		return nil // the session has ended already
	}
	return err
}

// forgetVersion makes the next request negotiate the version again.
func (c *Client) forgetVersion() {
	select {
	case c.session.busy <- struct{}{}:
		c.session.version = 0
		<-c.session.busy
	default: // another goroutine holds the lock
	}
}

// Version returns the X-API-Version in use: the lowest of the appliance's highest version, testedVersion and Config.APIVersion.
func (c *Client) Version(ctx context.Context) (int, error) {
	_, version, err := c.login(ctx, "")
	return version, err
}

// Close logs out, if there is a session. The client can be used again afterwards; it then logs in again.
func (c *Client) Close(ctx context.Context) error {
	unlock, err := c.session.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if c.session.token == "" {
		return nil
	}
	return c.logout(ctx)
}
