package fakeironic

import (
	"net/http"
	"regexp"
	"slices"
	"sort"
)

const maxTraits = 50

// traitPattern takes custom traits, and what looks like one of the standard traits.
var traitPattern = regexp.MustCompile(`^(CUSTOM_[A-Z0-9_]+|(HW|COMPUTE|STORAGE|MISC|OWNER|HARDWARE)_[A-Z0-9_]+)$`)

// checkTrait refuses a text that is no trait; schema names the body in the error.
func checkTrait(schema, trait string) error {
	if traitPattern.MatchString(trait) && len(trait) <= 255 {
		return nil
	}
	if schema != "" {
		schema = " for " + schema
	}
	return fault(http.StatusBadRequest, "Schema error%s: %s is not valid under any of the given schemas. Possible root cause: %s does not match "+
		"'^CUSTOM_[A-Z0-9_]+$'", schema, pyRepr(trait), pyRepr(trait))
}

// routeTraits answers /v1/nodes/{node}/traits.
func (s *Server) routeTraits(c *call, n *node, rest []string) (reply, error) {
	if c.minor < 37 {
		return reply{}, notAcceptable()
	}
	if len(rest) > 1 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	if c.method == http.MethodGet && len(rest) == 0 {
		return ok(http.StatusOK, ordered{{"traits", n.traits()}}), nil
	}
	var traits []string
	var err error
	switch {
	case c.method == http.MethodPut && len(rest) == 0:
		traits, err = readTraits(c)
	case c.method == http.MethodPut:
		err = checkTrait("trait", rest[0])
		traits = append(n.traits(), rest[0])
	case c.method == http.MethodDelete && len(rest) == 0:
		traits = []string{}
	case c.method == http.MethodDelete:
		traits = n.traits()
		at := slices.Index(traits, rest[0])
		if at < 0 {
			return reply{}, fault(http.StatusNotFound, "Node %s doesn't have a trait '%s'", n.str("uuid"), rest[0])
		}
		traits = slices.Delete(traits, at, at+1)
	default:
		return reply{}, methodNotAllowed("DELETE, GET, PUT")
	}
	if err != nil {
		return reply{}, err
	}
	if err := s.setTraits(n, traits); err != nil {
		return reply{}, err
	}
	answer := done(http.StatusNoContent)
	if c.method == http.MethodPut && len(rest) == 1 {
		answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/traits/"+rest[0])
	}
	return answer, nil
}

func readTraits(c *call) ([]string, error) {
	body, err := c.object("body")
	if err != nil {
		return nil, err
	}
	if err := (schema{name: "body", members: map[string]kind{"traits": {types: []string{"array"}}}}).check(body); err != nil {
		return nil, err
	}
	if _, given := body["traits"]; !given {
		return nil, fault(http.StatusBadRequest, "A single node trait may be added via PUT /v1/nodes/<node identifier>/traits/<trait> with no "+
			"body, or all node traits may be replaced via PUT /v1/nodes/<node identifier>/traits with the list of traits specified in the request body.")
	}
	if err := checkTexts("body", body["traits"]); err != nil {
		return nil, err
	}
	traits := texts(body["traits"])
	for _, trait := range traits {
		if err := checkTrait("body", trait); err != nil {
			return nil, err
		}
	}
	return traits, nil
}

// setTraits replaces the traits of a node, sorted and without duplicates.
func (s *Server) setTraits(n *node, traits []string) error {
	sort.Strings(traits)
	traits = slices.Compact(traits)
	if len(traits) > maxTraits {
		return fault(http.StatusBadRequest, "Could not modify traits for node %d as it would exceed the maximum number of traits per node (%d vs. %d)",
			n.order, len(traits), maxTraits)
	}
	if err := n.locked(); err != nil {
		return err
	}
	n.put("traits", traits)
	n.put("updated_at", timestamp(s.now))
	return nil
}
