package fakeironic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

// Parts of the API that other clients look at, and of which the server has no model: lists are empty, and what would create something is
// refused.

// since is the first API version with a part; there is none before.
var since = map[string]int{"lookup": 22, "heartbeat": 22, "volume": 32, "events": 54, "shards": 82}

// routeUnmodelled answers the paths of since.
func (s *Server) routeUnmodelled(c *api.Call) (api.Reply, error) {
	kind := c.Path[0]
	first, known := since[kind]
	get := c.Method == http.MethodGet
	switch {
	case !known:
	case c.Minor < first && kind == "shards" && !get:
		return api.Reply{}, api.RouterFault(http.StatusMethodNotAllowed, "The API version does not allow shards")
	case c.Minor < first && kind == "shards":
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "The API version does not allow shards")
	case c.Minor < first && kind != "volume" && kind != "events":
		return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
	case c.Minor < first:
	case kind == "volume":
		return s.routeVolume(c, "", c.Path[1:])
	case kind == "shards" && len(c.Path) == 1 && get:
		return api.OK(http.StatusOK, api.Ordered{{"shards", s.shards()}}), nil
	case kind == "lookup" && len(c.Path) == 1 && get:
		return s.lookup(c)
	case kind == "heartbeat" && len(c.Path) == 2 && c.Method == http.MethodPost:
		return s.heartbeat(c)
	case kind == "events" && len(c.Path) == 1 && c.Method == http.MethodPost:
		return postEvents(c)
	}
	return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
}

// shards returns the shards of all nodes, with their numbers of nodes.
func (s *Server) shards() []any {
	counts := map[string]int{}
	for _, n := range s.conductor.Nodes {
		counts[n.Str("shard")]++
	}
	list := []any{}
	for _, name := range api.SortedKeys(counts) {
		list = append(list, api.Ordered{{"name", api.OrNull(name)}, {"count", counts[name]}})
	}
	return list
}

// routeVolume answers /v1/volume and /v1/nodes/{node}/volume. There are no volumes, and the policy lets nobody add one.
func (s *Server) routeVolume(c *api.Call, prefix string, rest []string) (api.Reply, error) {
	if c.Minor < since["volume"] {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	if len(rest) == 0 {
		path := prefix + "volume/"
		return api.OK(http.StatusOK, api.Ordered{
			{"links", c.Links(path)}, {"connectors", c.Links(path + "connectors")}, {"targets", c.Links(path + "targets")},
		}), nil
	}
	kind := strings.TrimSuffix(rest[0], "s")
	if rest[0] != "connectors" && rest[0] != "targets" || len(rest) > 2 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	switch {
	case c.Method == http.MethodPut:
		return api.Reply{}, api.RouterFault(http.StatusMethodNotAllowed, "")
	case len(rest) == 2 && !api.IsUUID(rest[1]):
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID for %s_uuid: %s", kind, rest[1])
	case len(rest) == 2:
		return api.Reply{}, api.Fault(http.StatusNotFound, "Volume %s %s could not be found.", kind, rest[1])
	case c.Method == http.MethodPost:
		return api.Reply{}, s.refuseVolume(c, kind)
	case c.Method != http.MethodGet:
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
	}
	if ref := c.Query.Get("node"); ref != "" && s.conductor.Find(ref) == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Node %s could not be found.", ref)
	}
	return api.OK(http.StatusOK, api.Ordered{{rest[0], []any{}}}), nil
}

// refuseVolume says what is wrong with a new volume connector or target, in the words of 21.4, or else that nobody may add one.
func (s *Server) refuseVolume(c *api.Call, kind string) error {
	body, err := c.Object(kind)
	if err != nil {
		return err
	}
	rules := api.Schema{Name: kind, Members: map[string]api.Kind{
		"connector_id": api.StringKind, "extra": api.ObjectKind, "node_uuid": api.StringKind, "type": api.StringKind, "uuid": api.TextKind,
	}, Required: []string{"connector_id", "node_uuid", "type"}}
	if kind == "target" {
		rules.Required = []string{"boot_index", "node_uuid", "volume_id", "volume_type"}
		rules.Members = map[string]api.Kind{
			"boot_index": {Types: []string{"number"}}, "extra": api.ObjectKind, "node_uuid": api.StringKind, "properties": api.ObjectKind,
			"uuid": api.TextKind, "volume_id": api.StringKind, "volume_type": api.StringKind,
		}
		if index := body["boot_index"]; index != nil && api.JSONType(index) != "number" {
			return rules.Fault("%s is not of type 'integer'", api.PyRepr(index))
		}
	}
	if err := rules.Check(body); err != nil {
		return err
	}
	for _, key := range []string{"node_uuid", "uuid"} {
		if value := api.Text(body[key]); body[key] != nil && !api.IsUUID(value) {
			return api.Fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, value)
		}
	}
	if node := api.Text(body["node_uuid"]); s.seen(c, node) == nil {
		return api.Fault(http.StatusBadRequest, "Invalid input for field/attribute node_uuid. Value: '%s'. ", node)
	}
	return api.Fault(http.StatusForbidden, "Access was denied to the following resource: baremetal:volume:create")
}

// lookup answers GET /v1/lookup, with which a ramdisk finds its node. Ironic hides the nodes that wait for no ramdisk.
func (s *Server) lookup(c *api.Call) (api.Reply, error) {
	if err := c.Accept("addresses", "node_uuid"); err != nil {
		return api.Reply{}, err
	}
	uuid := c.Query.Get("node_uuid")
	if uuid != "" && !api.IsUUID(uuid) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID for node_uuid: %s", uuid)
	}
	n, valid := s.conductor.NodeByUUID[uuid], false
	for _, address := range api.SplitList(c.Query["addresses"]) {
		mac, err := api.ReadMAC(address)
		if err != nil {
			continue
		}
		valid = true
		if p := s.conductor.PortByMAC[mac]; uuid == "" && n == nil && p != nil {
			n = p.Node
		}
	}
	switch {
	case uuid == "" && !valid:
		return api.Reply{}, api.Fault(http.StatusBadRequest, "At least one of 'addresses' and 'node_uuid' parameters is required")
	case n == nil || !n.State().WaitsForRamdisk(s.FastTrack):
		return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
	}
	return api.OK(http.StatusOK, s.ramdiskAnswer(c, n)), nil
}

// ramdiskAnswer is what Ironic tells a ramdisk of its node. It makes a token for the ramdisk.
func (s *Server) ramdiskAnswer(c *api.Call, n *conductor.Node) api.Ordered {
	token := api.NewUUID()
	n.Note("agent_secret_token", token)
	return api.Ordered{
		{"node", s.render(c, n, s.viewFor(c, n, []string{"uuid", "properties", "instance_info", "driver_internal_info", "links"}))},
		{"config", api.Ordered{{"heartbeat_timeout", 300}, {"agent_token", token}, {"agent_token_required", true}}},
	}
}

// heartbeat answers POST /v1/heartbeat/{node}. The work of a node does not depend on its ramdisk.
func (s *Server) heartbeat(c *api.Call) (api.Reply, error) {
	n := s.seen(c, c.Path[1])
	if n == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Node %s could not be found.", c.Path[1])
	}
	body, err := c.Object("body")
	if err != nil {
		return api.Reply{}, err
	}
	token := api.Text(body["agent_token"])
	switch {
	case api.Text(body["callback_url"]) == "":
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: callback_url")
	case body["agent_version"] != nil && c.Minor < 36:
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Field \"agent_version\" not recognised")
	case token == "":
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Agent token is required for heartbeat processing.")
	case token != api.Text(api.Object(n.Fields["driver_internal_info"])["agent_secret_token"]):
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid or missing agent token received.")
	}
	return api.Done(http.StatusAccepted), nil
}

// postEvents answers POST /v1/events, with which Neutron reports what became of ports.
func postEvents(c *api.Call) (api.Reply, error) {
	body, err := c.Object("evts")
	if err != nil {
		return api.Reply{}, err
	}
	rules := api.Schema{Name: "evts", Members: map[string]api.Kind{"events": {Types: []string{"array"}}}, Required: []string{"events"}}
	if err := rules.Check(body); err != nil {
		return api.Reply{}, err
	}
	known := []any{"network.bind_port", "network.unbind_port", "network.delete_port"}
	list, _ := body["events"].([]any)
	for _, item := range list {
		event := api.Object(item)
		if !slices.Contains(known, event["event"]) {
			return api.Reply{}, rules.Fault("%s is not one of %s", api.PyRepr(event["event"]), api.PyRepr(known))
		}
		for _, key := range []string{"port_id", "mac_address", "status"} {
			if _, given := event[key]; !given {
				return api.Reply{}, api.Fault(http.StatusBadRequest, "Schema error for event: %s is a required property", api.PyRepr(key))
			}
		}
		if _, err := api.ReadMAC(event["mac_address"]); err != nil {
			return api.Reply{}, err
		}
	}
	if len(list) == 0 {
		return api.Reply{}, rules.Fault("[] is too short")
	}
	return api.Done(http.StatusNoContent), nil
}
