package fakeironic

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

// indicator is a light of a machine.
type indicator struct {
	name, component string
	readonly        bool
	states          []string
}

func (i indicator) unique() string { return i.name + "@" + i.component }

// indicatorsOf returns the lights that a management interface has; nil: it has none. Those of Redfish have UUIDs as names.
func indicatorsOf(n *conductor.Node) []indicator {
	all := []string{"blinking", "off", "on"}
	switch management := n.Uses("management"); {
	case management == "fake":
		return []indicator{{"led-0", "chassis", true, []string{"off", "on"}}, {"led", "system", false, all}}
	case strings.HasSuffix(management, "redfish"):
		return []indicator{{"c" + n.Str("uuid")[1:], "chassis", false, all}, {n.Str("uuid"), "system", false, all}}
	}
	return nil
}

// indicators answers /v1/nodes/{node}/management/indicators and those of one of them, whatever the API version is.
func (s *Server) indicators(c *api.Call, n *conductor.Node, rest []string) (api.Reply, error) {
	unsupported := func(what string) error {
		return api.Fault(http.StatusBadRequest, "Driver %s does not support %s (disabled or not implemented).", n.Str("driver"), what)
	}
	known := indicatorsOf(n)
	switch {
	case len(rest) == 1:
		return s.indicator(c, n, known, rest[0], unsupported)
	case c.Method == http.MethodPut:
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: indicator")
	case c.Method != http.MethodGet:
		return api.Reply{}, api.MethodNotAllowed("GET")
	case known == nil:
		return api.Reply{}, unsupported("get_supported_indicators")
	}
	if reason := n.BMCFault("management"); reason != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", reason)
	}
	list := make([]any, len(known))
	for i, one := range known {
		path := "nodes/" + c.Path[1] + "/management/indicators/" + one.unique()
		list[i] = api.Ordered{
			{"name", one.unique()},
			{"component", one.component},
			{"readonly", one.readonly},
			{"states", one.states},
			{"links", c.Links(path)},
		}
	}
	return api.OK(http.StatusOK, api.Ordered{{"indicators", list}}), nil
}

// indicator answers GET and PUT of one light. The management interface fake always shows on, and switches none.
func (s *Server) indicator(
	c *api.Call, n *conductor.Node, known []indicator, unique string, unsupported func(string) error,
) (api.Reply, error) {
	if c.Method != http.MethodGet && c.Method != http.MethodPut {
		return api.Reply{}, api.MethodNotAllowed("GET, PUT")
	}
	state, err := readIndicator(c)
	if err != nil {
		return api.Reply{}, err
	}
	name, component, well := strings.Cut(unique, "@")
	if !well {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Malformed indicator name \"%s\"", unique)
	}
	if err := cmp.Or(n.Locked(), s.conductor.CheckInterfaces(n)); err != nil {
		return api.Reply{}, err
	}
	if reason := n.BMCFault("management"); reason != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", reason)
	}
	n.Put("updated_at", api.Timestamp(s.conductor.Now)) // by the lock
	isFake := n.Uses("management") == "fake"
	has := slices.ContainsFunc(known, func(i indicator) bool { return i.unique() == unique })
	switch {
	case c.Method == http.MethodPut && (isFake || known == nil):
		return api.Reply{}, unsupported("set_indicator_state")
	case known == nil:
		return api.Reply{}, unsupported("get_indicator_state")
	case !has && isFake && !slices.ContainsFunc(known, func(i indicator) bool { return i.component == component }):
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid component %s specified.", component)
	case !has && isFake:
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid indicator %s specified.", name)
	case !has:
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Unknown indicator %s for component %s of node %s", name, component,
			n.Str("uuid"))
	case c.Method == http.MethodGet && isFake:
		return api.OK(http.StatusOK, api.Ordered{{"state", "on"}}), nil
	case c.Method == http.MethodGet:
		shows := n.Machine.Indicators[unique]
		if shows == "" {
			shows = "off"
		}
		return api.OK(http.StatusOK, api.Ordered{{"state", shows}}), nil
	case !slices.Contains(known[0].states, state):
		return api.Reply{}, api.UnexpectedRPC()
	}
	if n.Machine.Indicators == nil {
		n.Machine.Indicators = map[string]string{}
	}
	n.Machine.Indicators[unique] = state
	return api.Done(http.StatusNoContent), nil
}

// readIndicator reads the state of a PUT from the body or the query.
func readIndicator(c *api.Call) (string, error) {
	if c.Method == http.MethodGet {
		return "", nil
	}
	body, err := c.Object("body")
	if err != nil {
		return "", err
	}
	for key := range c.Query {
		body[key] = c.Query.Get(key)
	}
	for _, key := range api.SortedKeys(body) {
		if key != "state" {
			return "", api.Fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	value, given := body["state"]
	text, isText := value.(string)
	switch {
	case !given:
		return "", api.Fault(http.StatusBadRequest, "Missing mandatory parameter: state")
	case !isText:
		return "", api.Fault(http.StatusBadRequest, "Expected string for state: %s", api.PyText(value))
	}
	return text, nil
}
