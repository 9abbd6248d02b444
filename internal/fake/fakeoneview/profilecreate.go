package fakeoneview

import (
	"net/http"
	"slices"
	"strings"
)

// draft is a profile in the body of a request.
type draft struct {
	document map[string]any
	hardware *hardware
	template *template
	force    []string
}

// draft reads a profile from the body. It refuses invalid fields and URIs that do not exist. The task checks later whether the
// profile fits the hardware.
func (s *Server) draft(c *call) (draft, error) {
	document, err := c.object()
	if err != nil {
		return draft{}, err
	}
	if err := checkType(c, document, typesAt(c.version).profile); err != nil {
		return draft{}, err
	}
	if strings.TrimSpace(text(document, "name")) == "" {
		return draft{}, badField("name", "it is required")
	}
	nest(document)
	d := draft{document: document, force: strings.Split(strings.ToLower(c.query.Get("force")), ",")}
	if uri := text(document, "serverHardwareUri"); uri != "" {
		if d.hardware = s.findHardware(uri); d.hardware == nil {
			return draft{}, badField("serverHardwareUri", "there is no %s", uri)
		}
	} else if text(document, "serverHardwareTypeUri") == "" {
		return draft{}, badField("serverHardwareUri", "it is required, or serverHardwareTypeUri and enclosureGroupUri")
	}
	if uri := text(document, "serverProfileTemplateUri"); uri != "" {
		if d.template = s.findTemplate(uri); d.template == nil {
			return draft{}, badField("serverProfileTemplateUri", "there is no %s", uri)
		}
	}
	if d.hardware != nil {
		for key, uri := range map[string]string{"serverHardwareTypeUri": d.hardware.TypeURI, "enclosureGroupUri": d.hardware.GroupURI} {
			if text(document, key) == "" {
				document[key] = orNull(uri)
			}
		}
	}
	return d, nil
}

// checkType refuses the type of another API version. From 1600 on the type is optional.
func checkType(c *call, document map[string]any, want string) error {
	given := text(document, "type")
	if given == want || (given == "" && c.version >= 1600) {
		return nil
	}
	return fault(http.StatusBadRequest, "INVALID_TYPE", "The \"type\" field content, %q, included in this request is not valid.", given)
}

func (s *Server) postProfile(c *call) (Reply, error) {
	d, err := s.draft(c)
	if err != nil {
		return Reply{}, err
	}
	name := text(d.document, "name")
	p := &profile{uri: "/rest/" + pathProfiles + "/" + newUUID(), document: d.document, template: d.template, status: OK}
	op := &operation{
		task:    &task{name: "Create", label: name, category: pathProfiles},
		running: "Create", failed: "Unable to create server profile: " + name,
		check: func() *Problem { return s.checkFit(d, nil) },
	}
	op.begin = func() {
		p.created, p.modified, p.operation = s.now, s.now, op
		op.task.resource = p.uri
		s.profiles = append(s.profiles, p)
		if d.hardware != nil {
			op.task.updates = append(op.task.updates,
				"Set administrative server power lock for the server hardware "+d.hardware.link()+".", "Apply server settings.")
		}
		s.assign(p, d.hardware)
	}
	op.finish = func() { s.settle(p, OK) }
	op.broken = func() { s.settle(p, Critical) }
	return s.start(c, op)
}

// checkFit returns why the profile does not fit its hardware, nil if it does. own is the existing profile; nil for a new one.
func (s *Server) checkFit(d draft, own *profile) *Problem {
	name := text(d.document, "name")
	for _, p := range s.profiles {
		if p != own && strings.EqualFold(p.name(), name) {
			return problem("ProfileNameAlreadyExists", "Specify a unique name and try again.", // the real code is not known
				"A server profile with the name %q already exists.", name)
		}
	}
	h := d.hardware
	if h == nil || (own != nil && own.hardware == h) {
		return nil
	}
	const verify = "Verify parameters and try again."
	switch {
	case h.profile != nil:
		return problem("ProfileAlreadyExistsInServer", "Select another server hardware or remove the profile that is assigned to it.",
			"A profile is already assigned to the server hardware %s.", h.link())
	case h.Power != Off: // the real code is not known
		return problem("ServerHardwareIsPoweredOn", "Power off the server and try again.", "The server hardware %s is powered on.",
			h.link())
	case !sameURI(text(d.document, "serverHardwareTypeUri"), h.TypeURI):
		return problem("ServerHardwareTypeMismatch", verify, "The server hardware type of the profile is not that of %s.", h.link())
	case !sameURI(text(d.document, "enclosureGroupUri"), h.GroupURI):
		return problem("EnclosureGroupMismatch", verify, "The enclosure group of the profile is not that of %s.", h.link())
	case h.Status != OK && !slices.Contains(d.force, "all") && !slices.Contains(d.force, "ignoreserverhealth"):
		return problem("ServerHardwareStatusNotOK", "Resolve the health problem or use force.",
			`The selected server hardware has health status other than "OK".`)
	}
	return nil
}

// assign assigns a profile to hardware and locks its power. h may be nil.
func (s *Server) assign(p *profile, h *hardware) {
	p.hardware = h
	if h == nil {
		return
	}
	h.profile, h.State, h.PowerLock = p, ApplyingProfile, true
	s.touch(h)
}

// settle ends an operation on a profile and its hardware. With status Critical it failed.
func (s *Server) settle(p *profile, status Status) {
	p.status = status
	s.touchProfile(p)
	if h := p.hardware; h != nil {
		h.PowerLock, h.State = false, ProfileApplied
		if status == Critical {
			h.State = ProfileError
		}
		s.touch(h)
	}
}

// touchProfile gives a profile a new eTag.
func (s *Server) touchProfile(p *profile) {
	p.revision++
	p.modified = later(s.now, p.modified)
}

// free removes the profile from its hardware.
func (s *Server) free(p *profile) {
	h := p.hardware
	if h == nil {
		return
	}
	p.hardware = nil
	h.profile, h.State, h.PowerLock = nil, NoProfileApplied, false
	s.touch(h)
}
