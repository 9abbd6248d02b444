package fakeoneview

import (
	"fmt"
	"net/http"
)

// Harm is what clients did to others: every DELETE, PUT and PATCH of a profile that is another user's, and every change of
// power of a server with such a profile, with what was asked for. Profiles are another user's when TakeHardware made them or
// MarkOthers marked them. Attempts count as well, also those that a fault kept from having an effect; those that ended in 401,
// 404 or 412 do not: the last were guarded by their If-Match.
func (s *Server) Harm() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.harm...)
}

// victims are the profiles of others that a call is about to touch, themselves or the server that they are on.
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
		touched, _ = s.chosen(c) // a wrong filter chooses nothing
	}
	var victims []*profile
	for _, p := range touched {
		if p.foreign {
			victims = append(victims, p)
		}
	}
	return victims
}

// chosen are the profiles that the filters of a call leave.
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

// remember notes what was done to the victims.
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
