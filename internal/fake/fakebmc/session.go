package fakebmc

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"time"
)

type session struct {
	id                 string
	username, password string
	last               time.Time // last request
}

const (
	root            = "/redfish/v1"
	sessionsPath    = root + "/SessionService/Sessions"
	standardSession = 30 * time.Minute
)

// admit authenticates the client. Without a session or with a wrong password it answers 401.
func (c *call) admit(res *resource, names []string) *fault {
	if res != nil && (res.open || c.path == sessionsPath && c.method == http.MethodPost) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	username, password, basic := c.request.BasicAuth()
	if token := c.request.Header.Get("X-Auth-Token"); token != "" {
		if c.session = c.sessions[token]; c.session != nil && time.Since(c.session.last) > c.sessionTime() {
			delete(c.sessions, token)
			c.session = nil
		}
		if c.session != nil {
			c.session.last = time.Now()
			username, password = c.session.username, c.session.password
		}
		basic = c.session != nil
	}
	if basic {
		c.allowed = c.accounts(username, password)
	}
	if len(c.allowed) > 0 {
		return nil
	}
	if basic {
		c.noteRefusal(username, names)
	}
	fault := problem(http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
	return fault
}

func (s *Server) sessionTime() time.Duration {
	if s.SessionTime == 0 {
		return standardSession
	}
	return s.SessionTime
}

// accounts returns the machines that have this user name and password.
func (s *Server) accounts(username, password string) []*BMC {
	var all []*BMC
	for _, b := range s.bmcs {
		if b.accepts(username, password) {
			all = append(all, b)
		}
	}
	return all
}

// noteRefusal notes a wrong password in the history of the machine in the path, or else of those with the user name.
func (s *Server) noteRefusal(username string, names []string) {
	for _, b := range s.bmcs {
		if slices.Contains(names, b.config.Name) || len(names) == 0 && b.config.Username == username {
			b.Note(LoginRefused, username)
		}
	}
}

func login(c *call) (reply, *fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	username, password := c.text("UserName"), c.text("Password")
	if len(c.accounts(username, password)) == 0 {
		c.noteRefusal(username, nil)
		return reply{}, problem(http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
	}
	if c.sessions == nil {
		c.sessions = map[string]*session{}
	}
	c.sequence++
	made := &session{id: fmt.Sprint(c.sequence), username: username, password: password, last: time.Now()}
	token := rand.Text()
	c.sessions[token] = made
	return reply{
		status: http.StatusCreated, body: made.document(),
		header: map[string]string{"X-Auth-Token": token, "Location": sessionsPath + "/" + made.id},
	}, nil
}

func (s *session) document() object {
	return document(sessionsPath+"/"+s.id, "Session.v1_3_0", "Session "+s.id, object{"UserName": s.username})
}

func sessionPaths(c *call) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var paths []string
	for _, s := range c.sessions {
		paths = append(paths, sessionsPath+"/"+s.id)
	}
	slices.Sort(paths)
	return paths
}

// sessionNamed returns a session of the client and its token; nil if there is none.
func sessionNamed(c *call) (string, *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, s := range c.sessions {
		if s.id == c.name {
			return token, s
		}
	}
	return "", nil
}

func logout(c *call) (reply, *fault) {
	token, _ := sessionNamed(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, token)
	return reply{status: http.StatusNoContent}, nil
}

// ExpireSessions ends all sessions, as a restart of the BMC does.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Sessions returns the number of open sessions.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}
