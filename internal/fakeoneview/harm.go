package fakeoneview

import (
	"fmt"
	"net/http"
)

// Harm returns what clients did to another user: every DELETE, PUT and PATCH of another user's profile, and every change of
// power of a server with such a profile. Profiles made by TakeHardware, moved by MoveProfile or marked by MarkOthers are another
// user's. Failed attempts count, also those that a fault stopped, except for answers 401, 404 and 412; the last means that
// If-Match protected the profile.
func (s *Server) Harm() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.harm...)
}

// victims returns the other users' profiles that a call is about to change, or that are on the server that it changes.
func (s *Server) victims(c *call) []*profile {
	if c.method != http.MethodPut && c.method != http.MethodPatch && c.method != http.MethodDelete {
		return nil
	}
	var touched []*profile
	switch {
	case c.at(1) == pathHardware:
		if h := s.findHardware("/rest/" + pathHardware + "/" + c.at(2)); h != nil && h.profile != nil {
			touched = append(touched, h.profile)
		}
	case c.at(1) == pathProfiles && c.at(2) != "":
		if p := s.findProfile("/rest/" + pathProfiles + "/" + c.at(2)); p != nil {
			touched = append(touched, p)
		}
	case c.at(1) == pathProfiles && c.method == http.MethodDelete:
		touched, _ = s.chosen(c) // an invalid filter matches no profile
	}
	var victims []*profile
	for _, p := range touched {
		if p.foreign {
			victims = append(victims, p)
		}
	}
	return victims
}

// chosen returns the profiles that match the filters of a call.
func (s *Server) chosen(c *call) ([]*profile, error) {
	documents := []map[string]any{}
	for _, p := range s.profiles {
		documents = append(documents, s.profileDocument(c, p))
	}
	found, err := filtered(c, pathProfiles, documents)
	if err != nil {
		return nil, err
	}
	var chosen []*profile
	for _, document := range found {
		chosen = append(chosen, s.mustProfile(text(document, "uri")))
	}
	return chosen, nil
}

// remember logs what a call did to the victims.
func (s *Server) remember(c *call, victims []*profile, status int) {
	if status == http.StatusUnauthorized || status == http.StatusNotFound || status == http.StatusPreconditionFailed {
		return
	}
	for _, p := range victims {
		server := "no hardware"
		if p.hardware != nil {
			server = p.hardware.Name
		}
		s.harm = append(s.harm, fmt.Sprintf("%s %s %s: answered %d; profile %q of another user on %s", c.method, c.uri, c.body, status, p.name(), server))
	}
}
