package fakeoneview

import (
	"net/http"
	"slices"
	"strings"
)

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

// checkETag refuses a request with an old eTag, in If-Match or in the body, and one without an eTag if required is set.
func (s *Server) checkETag(c *call, p *profile, inBody string, required bool) error {
	known := strings.Trim(c.header.Get("If-Match"), `"`)
	if known == "" {
		known = inBody
	}
	switch {
	case known == "" && required:
		status := s.MissingIfMatch
		if status == 0 || status == http.StatusOK {
			status = http.StatusForbidden
		}
		return fault(status, "IF_MATCH_REQUIRED", "The request needs the ETag of the resource in If-Match.")
	case known == "" || known == "*" || known == p.eTag():
		return nil
	}
	return staleETag()
}

func (s *Server) deleteProfile(c *call, p *profile) (Reply, error) {
	if err := s.checkETag(c, p, "", s.MissingIfMatch != http.StatusOK && c.version >= 500); err != nil {
		return Reply{}, err
	}
	if p.working() {
		return Reply{}, locked(p.name())
	}
	op := &operation{
		task:    &task{name: "Delete", resource: p.uri, label: p.name(), category: pathProfiles},
		running: "Delete", failed: "Unable to delete server profile: " + p.name() + ".",
		check:  func() *Problem { return checkOff(p.hardware) },
		begin:  func() { s.lockHardware(p, RemovingProfile) },
		finish: func() { s.remove(p) },
		broken: func() { s.settle(p, Critical) },
	}
	p.operation = op
	return s.start(c, op)
}

// checkOff refuses an operation on a server that is on. The real code for a delete is not known.
func checkOff(h *hardware) *Problem {
	if h == nil || h.Power == Off {
		return nil
	}
	return problem("ServerHardwareIsPoweredOn", "Power off the server and try again.",
		"The profile operation did not succeed because server hardware %s is powered on.", h.link())
}

func (s *Server) lockHardware(p *profile, state HardwareState) {
	if h := p.hardware; h != nil {
		h.State, h.PowerLock = state, true
		s.touch(h)
	}
}

func (s *Server) remove(p *profile) {
	s.free(p)
	s.profiles = slices.DeleteFunc(s.profiles, func(other *profile) bool { return other == p })
}

// deleteProfiles serves DELETE of the collection. Without a filter it deletes every profile.
func (s *Server) deleteProfiles(c *call) (Reply, error) {
	chosen, err := s.chosen(c)
	if err != nil {
		return Reply{}, err
	}
	every := &call{header: http.Header{"If-Match": {"*"}}, version: c.version}
	for _, p := range chosen {
		_, _ = s.deleteProfile(every, p) // locked profiles stay
	}
	return s.change(c, &task{name: "Delete", category: pathProfiles}, nil, func() {})
}

func (s *Server) putProfile(c *call, p *profile) (Reply, error) {
	d, err := s.draft(c)
	if err != nil {
		return Reply{}, err
	}
	if err := s.checkETag(c, p, text(d.document, "eTag"), true); err != nil {
		return Reply{}, err
	}
	if p.working() {
		return Reply{}, locked(p.name())
	}
	for _, key := range []string{"macType", "wwnType", "serialNumberType"} {
		if text(d.document, key) != text(p.document, key) {
			return Reply{}, badField(key, "it cannot be changed")
		}
	}
	changed := differences(p.document, d.document)
	if d.hardware != p.hardware {
		changed = append(changed, "serverHardwareUri")
	}
	return s.update(c, p, changed, func() *Problem { return s.checkFit(d, p) }, func() {
		p.document, p.template = d.document, d.template
		if d.hardware != p.hardware {
			s.free(p)
			s.assign(p, d.hardware)
		}
	})
}

// update changes a profile in a task. changed are the changed sections; for most of them the server must be off.
func (s *Server) update(c *call, p *profile, changed []string, check func() *Problem, apply func()) (Reply, error) {
	op := &operation{
		task:    &task{name: "Update", resource: p.uri, label: p.name(), category: pathProfiles},
		running: "Update", failed: "Unable to edit server profile: " + p.name() + ".",
	}
	op.check = func() *Problem {
		if problem := check(); problem != nil {
			return problem
		}
		return checkOffFor(p.hardware, changed)
	}
	op.begin = func() {
		apply()
		if len(changed) > 0 {
			s.lockHardware(p, ApplyingProfile)
		}
	}
	op.finish = func() { s.settle(p, OK) }
	op.broken = func() { s.settle(p, Critical) }
	p.operation = op
	return s.start(c, op)
}

// checkOffFor refuses changes of sections that need the server to be off.
func checkOffFor(h *hardware, changed []string) *Problem {
	changed = slices.DeleteFunc(slices.Clone(changed), func(key string) bool { return key == "connectionSettings" })
	if h == nil || h.Power == Off || len(changed) == 0 {
		return nil
	}
	return problem("ServerNotOffWithCauseForNoServerChange", "Power off the server or adjust the settings and retry.",
		"The requested changes cannot be applied because %s is powered on and the changes made to the following sections can only be "+
			"applied when the power is off: * %s", h.link(), strings.Join(changed, " * "))
}

// patchProfile serves PATCH, which must have one replace operation.
func (s *Server) patchProfile(c *call, p *profile) (Reply, error) {
	path, value, err := c.replaced()
	if err != nil {
		return Reply{}, err
	}
	if err := s.checkETag(c, p, "", false); err != nil {
		return Reply{}, err
	}
	if p.working() {
		return Reply{}, locked(p.name())
	}
	fine, nothing := func() *Problem { return nil }, func() {}
	switch {
	case path == "/templateCompliance" && value == "Compliant":
		if p.template == nil {
			return Reply{}, badField("templateCompliance", "the profile is not linked to a template")
		}
		wanted := clone(p.template.document)
		changed := differences(p.document, wanted)
		return s.update(c, p, changed, fine, func() {
			for _, key := range changed {
				p.document[key] = wanted[key]
			}
		})
	case path == "/refreshState" && value == "RefreshPending":
		return s.update(c, p, nil, fine, nothing)
	case (strings.HasSuffix(path, "/reapplyState") || path == "/serverHardwareReapplyState") && value == "ApplyPending":
		return s.update(c, p, []string{strings.TrimSuffix(strings.Trim(path, "/"), "/reapplyState")}, fine, nothing)
	}
	return Reply{}, badField(path, "%v cannot be set", value)
}
