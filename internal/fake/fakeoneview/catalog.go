package fakeoneview

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"
)

// schema answers with what a kind of resources may have: anything.
func schema(category string) Reply {
	return jsonReply(http.StatusOK, map[string]any{
		"$schema": "http://json-schema.org/draft-03/schema#", "title": category, "type": "object", "properties": map[string]any{},
	})
}

// routeCatalog serves the resources that clients only read: what servers and templates consist of.
func (s *Server) routeCatalog(c *call) (Reply, error) {
	category := c.at(1)
	if c.method != http.MethodGet {
		return Reply{}, methodNotAllowed(c.method)
	}
	documents := []map[string]any{}
	add := func(uri, name string, more map[string]any) {
		document := map[string]any{"uri": uri, "name": name, "category": category, "status": "OK", "state": "Active", "eTag": "1"}
		for key, value := range more {
			document[key] = value
		}
		documents = append(documents, document)
	}
	switch category {
	case pathTypes:
		for _, n := range s.types {
			add(n.uri, n.name, n.model())
		}
	case pathGroups:
		for _, n := range s.groups {
			add(n.uri, n.name, map[string]any{"type": "EnclosureGroupV8"})
		}
	case "enclosures":
		known := map[string]bool{"": true}
		for _, h := range s.hardware {
			if !known[h.EnclosureURI] {
				name, _, _ := strings.Cut(h.Name, ",")
				add(h.EnclosureURI, name, map[string]any{"type": "EnclosureV8", "enclosureGroupUri": h.GroupURI, "deviceBayCount": 16})
			}
			known[h.EnclosureURI] = true
		}
	case pathNetworks:
		for _, uri := range s.networks() {
			add(uri, "network-"+uri[len(uri)-4:], map[string]any{"type": "ethernet-networkV4", "vlanId": 0, "purpose": "General"})
		}
	case "scopes":
		if c.at(2) == "resources" {
			uri := strings.TrimPrefix(c.uri, "/rest/scopes/resources")
			return jsonReply(http.StatusOK, map[string]any{"type": "ScopedResource", "resourceUri": uri, "scopeUris": []any{}}), nil
		}
	}
	switch {
	case c.at(2) == "":
		return s.list(c, category, documents)
	case c.at(2) == "schema":
		return schema(category), nil
	}
	for _, document := range documents {
		if sameURI(text(document, "uri"), "/rest/"+category+"/"+c.at(2)) {
			return s.entity(c, document), nil
		}
	}
	return Reply{}, notFound(c.uri)
}

// model returns what the name of a server hardware type tells, such as "BL460c Gen9 1".
func (n named) model() map[string]any {
	model := n.name[:max(strings.LastIndex(n.name, " "), 0)]
	form := "1U"
	if strings.HasPrefix(model, "BL") {
		form = "HalfHeight"
	}
	return map[string]any{
		"type": "server-hardware-type-13", "model": "ProLiant " + model, "family": model[:min(2, len(model))], "formFactor": form,
		"generation": cmp.Or(regexp.MustCompile(`Gen\d+`).FindString(model), "Gen9"), "platform": "RackServer",
		"capabilities": []any{"ManageBIOS", "VirtualUUID"}, "bootModes": []any{"UEFI", "BIOS"}, "pxeBootPolicies": []any{"Auto"},
		"bootCapabilities": []any{"PXE", "HardDisk"}, "adapters": []any{}, "biosSettings": []any{},
	}
}

// networks returns the URIs of the networks of templates.
func (s *Server) networks() (uris []string) {
	for _, t := range s.templates {
		settings, _ := t.document["connectionSettings"].(map[string]any)
		connections, _ := settings["connections"].([]any)
		for _, connection := range connections {
			if one, _ := connection.(map[string]any); text(one, "networkUri") != "" {
				uris = append(uris, text(one, "networkUri"))
			}
		}
	}
	return uris
}

// available serves what is below the profiles, or templates, and no profile: what a new one may use.
func (s *Server) available(c *call) (answer Reply, found bool) {
	networks, none := []any{}, []any{}
	switch c.at(2) {
	case "schema":
		return schema(c.at(1)), true
	case "available-networks":
		for _, uri := range s.networks() {
			networks = append(networks, map[string]any{"uri": uri, "name": "network-" + uri[len(uri)-4:], "vlan": 0})
		}
		return jsonReply(http.StatusOK, map[string]any{
			"type": "AvailableNetworks", "ethernetNetworks": networks, "fcNetworks": none, "networkSets": none,
		}), true
	case "profile-ports":
		return jsonReply(http.StatusOK, map[string]any{"type": "ProfilePorts", "ports": none}), true
	case "available-storage-system":
		return jsonReply(http.StatusOK, map[string]any{"type": "AvailableStorageSystem", "volumes": none}), true
	case "available-storage-systems":
		answer, _ := s.list(c, c.at(2), nil) // without members, no filter is wrong
		return answer, true
	case "available-targets":
		return jsonReply(http.StatusOK, map[string]any{"type": "AvailableTargetsV3", "targets": s.availableTargets(c)}), true
	case "available-servers": // up to 1200, as a list
		return jsonReply(http.StatusOK, s.availableTargets(c)), c.version <= 1200
	}
	return Reply{}, false
}
