package fakeoneview

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// changeTemplate serves what creates, changes and deletes a template; t is nil for the collection.
func (s *Server) changeTemplate(c *call, t *template) (Reply, error) {
	switch {
	case c.method == http.MethodPost && t == nil:
		return s.saveTemplate(c, &template{uri: "/rest/" + pathTemplates + "/" + newUUID(), created: s.now}, "Create")
	case c.method == http.MethodPut && t != nil:
		return s.saveTemplate(c, t, "Update")
	case c.method == http.MethodPatch && t != nil:
		path, value, err := c.replaced()
		if err != nil {
			return Reply{}, err
		}
		return s.change(c, t.task("Update"), nil, func() {
			t.document[strings.TrimPrefix(path, "/")] = value
			t.modified = later(s.now, t.modified)
		})
	case c.method == http.MethodDelete && t != nil:
		return s.change(c, t.task("Delete"), func() *Problem { return s.linked(t) }, func() {
			s.templates = slices.DeleteFunc(s.templates, func(other *template) bool { return other == t })
		})
	}
	return Reply{}, methodNotAllowed(c.method)
}

func (t *template) task(name string) *task {
	return &task{name: name, resource: t.uri, label: text(t.document, "name"), category: pathTemplates}
}

// saveTemplate gives a template the document of the body.
func (s *Server) saveTemplate(c *call, t *template, act string) (Reply, error) {
	document, err := c.object()
	if err != nil {
		return Reply{}, err
	}
	if err := checkType(c, document, typesAt(c.version).template); err != nil {
		return Reply{}, err
	}
	kind := text(document, "serverHardwareTypeUri")
	switch {
	case strings.TrimSpace(text(document, "name")) == "":
		return Reply{}, badField("name", "it is required")
	case !slices.ContainsFunc(s.types, func(n named) bool { return sameURI(n.uri, kind) }):
		return Reply{}, badField("serverHardwareTypeUri", "there is no %s", kind)
	}
	nest(document)
	saved := map[string]any{"macType": "Physical", "wwnType": "Physical", "serialNumberType": "Physical", "description": ""}
	maps.Copy(saved, document)
	maps.Copy(saved, map[string]any{"uri": t.uri, "category": pathTemplates, "status": OK, "state": "Normal"})
	began := t.task(act)
	began.label = text(document, "name")
	return s.change(c, began, nil, func() {
		t.document, t.modified = saved, later(s.now, t.modified)
		if !slices.Contains(s.templates, t) {
			s.templates = append(s.templates, t)
		}
	})
}

// linked refuses to delete a template that profiles are linked to. The real code is not known.
func (s *Server) linked(t *template) *Problem {
	for _, p := range s.profiles {
		if p.template == t {
			return problem("ServerProfileTemplateInUse", "Unlink the server profiles and try again.",
				"The server profile %s is linked to the template.", p.name())
		}
	}
	return nil
}
