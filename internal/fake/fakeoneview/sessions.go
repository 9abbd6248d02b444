package fakeoneview

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"
)

// maxIdleTimeout is the longest and the default idle time-out of a session.
const maxIdleTimeout = 24 * time.Hour

type session struct {
	used time.Time
	idle time.Duration
}

// Sessions returns the number of open sessions.
func (s *Server) Sessions() int {
	defer s.lock()()
	s.dropIdle()
	return len(s.sessions)
}

// ExpireSessions ends all sessions, as the idle time-out does.
func (s *Server) ExpireSessions() {
	defer s.lock()()
	clear(s.sessions)
}

// dropIdle ends the sessions that reached their idle time-out.
func (s *Server) dropIdle() {
	for token, open := range s.sessions {
		if s.now.Sub(open.used) >= open.idle {
			delete(s.sessions, token)
		}
	}
}

// authorized reports whether a call has a session, and restarts its idle time-out.
func (s *Server) authorized(c *call) bool {
	s.dropIdle()
	open := s.sessions[c.header.Get("Auth")]
	if open == nil {
		return false
	}
	open.used = s.now
	return true
}

func (s *Server) loginSessions(c *call) (Reply, error) {
	if c.at(2) != "" {
		return Reply{}, notFound(c.uri)
	}
	token := c.header.Get("Auth")
	switch c.method {
	case http.MethodPost:
		return s.login(c)
	case http.MethodPut: // reconnect
		if !s.authorized(c) {
			return Reply{}, notAuthorized()
		}
		return jsonReply(http.StatusOK, map[string]any{"sessionID": token}), nil
	case http.MethodDelete:
		if !s.authorized(c) {
			return Reply{}, fault(http.StatusBadRequest, "AUTHN_LOGOUT_FAILED", "The session could not be logged out.")
		}
		delete(s.sessions, token)
		return Reply{Status: http.StatusNoContent, Header: http.Header{}}, nil
	}
	return Reply{}, methodNotAllowed(c.method)
}

func (s *Server) login(c *call) (Reply, error) {
	body, err := c.object()
	if err != nil {
		return Reply{}, err
	}
	domain, want := text(body, "authLoginDomain"), s.Domain
	if domain == "" {
		domain = "LOCAL"
	}
	if want == "" {
		want = "LOCAL"
	}
	if s.Username != "" {
		right := strings.EqualFold(text(body, "userName"), s.Username) && text(body, "password") == s.Password &&
			strings.EqualFold(domain, want)
		if !right {
			return Reply{}, loginFailed()
		}
	}
	if acknowledged, _ := body["loginMsgAck"].(bool); s.LoginMessage && !acknowledged {
		return Reply{}, fault(http.StatusBadRequest, "AUTHN_LOGIN_MESSAGE_ACKNOWLEDGMENT_REQUIRED",
			"The login message must be acknowledged.")
	}
	s.dropIdle()
	limit := s.SessionLimit
	if limit == 0 {
		limit = 960
	}
	if len(s.sessions) >= limit { // the real status is not known
		return Reply{}, fault(http.StatusBadRequest, "SESSION_CLIENT_LIMIT", "The number of sessions of this client has reached its limit.")
	}
	idle := s.IdleTimeout
	if idle == 0 {
		idle = maxIdleTimeout
	}
	token := rand.Text()
	s.sessions[token] = &session{used: s.now, idle: idle}
	return jsonReply(http.StatusOK, map[string]any{"sessionID": token, "partnerData": map[string]any{}}), nil
}

// idleTimeout serves /rest/sessions/idle-timeout. The header Session-ID selects the session; for a wrong one it answers 404.
func (s *Server) idleTimeout(c *call) (Reply, error) {
	s.dropIdle()
	open := s.sessions[c.header.Get("Session-ID")]
	if c.at(2) != "idle-timeout" || c.at(3) != "" || open == nil {
		return Reply{}, notFound("session")
	}
	switch c.method {
	case http.MethodGet:
	case http.MethodPost:
		body, err := c.object()
		if err != nil {
			return Reply{}, err
		}
		wish, ok := body["idleTimeout"].(float64)
		idle := time.Duration(wish) * time.Millisecond
		if !ok || idle <= 0 || idle > maxIdleTimeout {
			return Reply{}, badField("idleTimeout", "it must be between 1 and %d", maxIdleTimeout.Milliseconds())
		}
		open.idle = idle
	default:
		return Reply{}, methodNotAllowed(c.method)
	}
	open.used = s.now
	return jsonReply(http.StatusOK, map[string]any{"idleTimeout": open.idle.Milliseconds()}), nil
}
