package fakeoneview

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Profile is a copy of a server profile for tests.
type Profile struct {
	URI         string
	Name        string
	HardwareURI string // empty if it is not assigned
	TemplateURI string // empty if it is not linked
	Status      Status
	InProgress  bool
	Others      bool // belongs to another user
}

// profile is a server profile. Its document has the newest form, without the members that profileDocument adds.
type profile struct {
	uri       string
	document  map[string]any
	hardware  *hardware // nil if it is not assigned
	template  *template // nil if it is not linked
	foreign   bool      // belongs to another user
	status    Status
	operation *operation // the last one
	revision  int
	created   time.Time
	modified  time.Time
}

// working reports whether an operation is in progress on the profile.
func (p *profile) working() bool { return p.operation != nil && !p.operation.over }

// creating reports whether the appliance is creating the profile.
func (p *profile) creating() bool { return p.working() && p.operation.task.name == "Create" }

func (p *profile) name() string { return text(p.document, "name") }

// Profiles returns the profiles in order of creation.
func (s *Server) Profiles() []Profile {
	defer s.lock()()
	all := []Profile{}
	for _, p := range s.profiles {
		shown := Profile{URI: p.uri, Name: p.name(), Status: p.status, InProgress: p.working(), Others: p.foreign}
		if p.hardware != nil {
			shown.HardwareURI = p.hardware.URI
		}
		if p.template != nil {
			shown.TemplateURI = p.template.uri
		}
		all = append(all, shown)
	}
	return all
}

func (s *Server) findProfile(uri string) *profile {
	for _, p := range s.profiles {
		if sameURI(p.uri, uri) {
			return p
		}
	}
	return nil
}

func (s *Server) mustProfile(uri string) *profile {
	p := s.findProfile(uri)
	if p == nil {
		panic("fakeoneview: there is no profile " + uri)
	}
	return p
}

func (p *profile) eTag() string { return fmt.Sprintf("%s/%d", milliseconds(p.modified), p.revision) }

// profileDocument returns the JSON of a profile in the form of the API version.
func (s *Server) profileDocument(c *call, p *profile) map[string]any {
	document := clone(p.document)
	document["type"], document["category"] = typesAt(c.version).profile, pathProfiles
	document["uri"], document["uuid"] = p.uri, strings.TrimPrefix(p.uri, "/rest/"+pathProfiles+"/")
	document["eTag"], document["created"], document["modified"] = p.eTag(), timestamp(p.created), timestamp(p.modified)
	document["status"], document["state"], document["inProgress"] = p.status, p.state(), p.working()
	document["refreshState"], document["serverHardwareReapplyState"] = "NotRefreshing", "NotApplying"
	document["taskUri"] = nil
	if p.operation != nil {
		document["taskUri"] = orNull(p.operation.task.uri)
	}
	for _, key := range []string{
		"serverHardwareUri", "associatedServer", "enclosureUri", "enclosureBay", "serialNumber",
		"serverProfileTemplateUri",
	} {
		document[key] = nil
	}
	if h := p.hardware; h != nil {
		document["serverHardwareUri"], document["associatedServer"], document["serialNumber"] = h.URI, h.URI, h.SerialNumber
		document["enclosureUri"] = orNull(h.EnclosureURI)
		if h.Bay > 0 {
			document["enclosureBay"] = h.Bay
		}
	}
	document["templateCompliance"] = p.compliance()
	if p.template != nil {
		document["serverProfileTemplateUri"] = p.template.uri
	}
	if c.version < 600 {
		flatten(document)
	}
	return document
}

// state returns the state of a profile. Whether real appliances use Updating and Deleting is not known.
func (p *profile) state() string {
	if !p.working() {
		return "Normal"
	}
	switch p.operation.task.name {
	case "Create":
		return "Creating"
	case "Delete":
		return "Deleting"
	}
	return "Updating"
}

func (p *profile) compliance() string {
	switch {
	case p.template == nil:
		return "Unknown"
	case len(differences(p.document, p.template.document)) > 0:
		return "NonCompliant"
	}
	return "Compliant"
}

// compliancePreview answers with the changes that make the profile compliant. Only connections can change while a server is on.
func (s *Server) compliancePreview(p *profile) (Reply, error) {
	if p.template == nil {
		return Reply{}, fault(http.StatusBadRequest, "INVALID_OPERATION", "The profile %s is not linked to a template.", p.name())
	}
	online, updates := true, []any{}
	for _, key := range differences(p.document, p.template.document) {
		online = online && key == "connectionSettings"
		updates = append(updates, "Change "+key+" as in the template.")
	}
	return jsonReply(http.StatusOK, map[string]any{
		"type": "ServerProfileCompliancePreviewV1", "isOnlineUpdate": online, "automaticUpdates": updates, "manualUpdates": []any{},
	}), nil
}

// profilePart serves what a client reads below a profile.
func (s *Server) profilePart(c *call, p *profile) (Reply, error) {
	switch c.at(3) {
	case "compliance-preview":
		return s.compliancePreview(p)
	case "messages":
		return jsonReply(http.StatusOK, map[string]any{"connections": map[string]any{"messages": []any{}}}), nil
	case "transformation":
		return jsonReply(http.StatusOK, transformed(c, s.profileDocument(c, p))), nil
	case "new-profile-template":
		document := clone(p.document)
		for _, key := range []string{"uri", "serverHardwareUri", "serverProfileTemplateUri"} {
			delete(document, key)
		}
		document["type"], document["category"], document["name"] = typesAt(c.version).template, pathTemplates, nil
		return jsonReply(http.StatusOK, document), nil
	}
	return Reply{}, notFound(c.uri)
}

// transformed gives a profile or a template the server hardware type and enclosure group of the query.
func transformed(c *call, document map[string]any) map[string]any {
	for _, key := range []string{"serverHardwareTypeUri", "enclosureGroupUri"} {
		if uri := c.query.Get(key); uri != "" {
			document[key] = uri
		}
	}
	return document
}

func (s *Server) availableTargets(c *call) []any {
	kind, group := c.query.Get("serverHardwareTypeUri"), c.query.Get("enclosureGroupUri")
	targets := []any{}
	for _, h := range s.hardware {
		fits := (kind == "" || sameURI(kind, h.TypeURI)) && (group == "" || sameURI(group, h.GroupURI))
		if !fits || (h.profile != nil && !sameURI(h.profile.uri, c.query.Get("profileUri"))) {
			continue
		}
		targets = append(targets, map[string]any{
			"serverHardwareUri": h.URI, "serverHardwareName": h.Name, "serverHardwareTypeUri": h.TypeURI,
			"enclosureGroupUri": orNull(h.GroupURI),
			"enclosureUri":      orNull(h.EnclosureURI), "enclosureBay": h.Bay, "powerState": h.Power, "serverHardwareStatus": h.Status,
			"formFactor": []any{},
		})
	}
	return targets
}
