package oneview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Bounds of logging in.
const (
	// firstPatience is how long an appliance is waited for of which nothing is heard: it may just be the wrong address.
	firstPatience = 15 * time.Second
	// refusalHolds is how long a refused login is remembered, as many failed ones can lock an account, and an address where
	// no appliance answered, as each of many hosts would wait for it.
	refusalHolds = time.Minute
)

// session is the one session that all users of a Client share.
type session struct {
	busy    chan struct{} // holds an element while somebody logs in or out or looks what there is
	token   string
	version int // X-API-Version; zero: not known yet

	refusal   error // of the last login; nil if it was accepted
	refusedAt time.Time
}

// refused is why the last login failed, if that was not long ago.
func (s *session) refused() error {
	if s.refusal != nil && time.Since(s.refusedAt) < refusalHolds {
		return s.refusal
	}
	return nil
}

// refuse remembers why a login failed.
func (s *session) refuse(err error) { s.refusal, s.refusedAt = err, time.Now() }

// lock waits for the session, or for the end of ctx.
func (s *session) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s.busy <- struct{}{}:
		return func() { <-s.busy }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// login returns the token of the session and the version to speak, logging in if there is no session, or if the one
// there is has ended. Of many who ask at once only one logs in.
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
		// It may be alive all the same, and appliances have room for so many sessions only.
		_ = c.logout(ctx)
	}
	s.token, err = c.newSession(ctx)
	if err != nil {
		var login *LoginError
		if errors.As(err, &login) {
			s.refuse(err)
		}
		return "", 0, err
	}
	s.refusal = nil
	return s.token, s.version, nil
}

// negotiate finds the version of the API that both sides speak.
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
	err := c.persist(ctx, min(c.cfg.Patience, firstPatience), ask)
	if isTransient(err) && isFromAppliance(err) {
		err = c.persist(ctx, c.cfg.Patience-firstPatience, ask)
	}
	if err != nil && ctx.Err() == nil {
		err = &unansweredError{err}
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
		return &VersionError{Lowest: spoken.MinimumVersion, Highest: spoken.CurrentVersion, Configured: c.cfg.APIVersion, Setting: c.cfg.called("api_version")}
	}
	c.session.version = version
	return nil
}

// newSession logs in.
func (c *Client) newSession(ctx context.Context) (token string, err error) {
	body := map[string]any{"userName": c.cfg.Username, "password": c.cfg.Password, "loginMsgAck": true}
	if c.cfg.Domain != "" {
		body["authLoginDomain"] = c.cfg.Domain
	}
	var opened struct {
		SessionID string `json:"sessionID"`
	}
	err = c.persist(ctx, c.cfg.Patience, func() error {
		got, err := c.exchange(ctx, request{method: http.MethodPost, path: "/rest/login-sessions", body: body}, "", c.session.version)
		if err != nil {
			return err
		}
		return got.into(&opened)
	})
	var refused *StatusError
	if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError && !isTransient(err) {
		return "", &LoginError{Username: c.cfg.Username, Domain: c.cfg.Domain, Err: err}
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
	var refused *StatusError
	if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
		return nil // it has ended before
	}
	return err
}

// forgetVersion makes the next request ask again what the appliance speaks.
func (c *Client) forgetVersion() {
	select {
	case c.session.busy <- struct{}{}:
		c.session.version = 0
		<-c.session.busy
	default: // somebody is at it
	}
}

// Version returns the X-API-Version in use: the lowest of what the appliance knows, what this package was tested with, and
// what is configured.
func (c *Client) Version(ctx context.Context) (int, error) {
	_, version, err := c.login(ctx, "")
	return version, err
}

// Close logs out, if there is a session. The client can be used again afterwards, which logs in anew.
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
