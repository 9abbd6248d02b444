package fakeironic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/switches"
)

func (s *Server) routeDrivers(c *api.Call) (api.Reply, error) {
	if c.Method != http.MethodGet && len(c.Path) < 3 {
		return api.Reply{}, api.MethodNotAllowed("GET")
	}
	if len(c.Path) == 1 {
		if err := c.Accept("type", "detail", "fields"); err != nil {
			return api.Reply{}, err
		}
		drivers := []any{}
		for _, h := range conductor.HardwareTypes {
			drivers = append(drivers, s.showDriver(c, h.At(s.maxMinor()), c.Query.Get("detail") != ""))
		}
		return api.OK(http.StatusOK, api.Ordered{{"drivers", drivers}}), nil
	}
	h, found := conductor.FindDriver(c.Path[1])
	switch {
	case !found && len(c.Path) > 2:
		return api.Reply{}, api.Fault(http.StatusNotFound, "The driver %s is unknown.", api.PyRepr(c.Path[1]))
	case !found:
		return api.Reply{}, api.Fault(http.StatusNotFound, "Could not find the following driver(s) or hardware type(s): %s.", c.Path[1])
	case len(c.Path) > 2:
		return routeDriver(c, h.Name, c.Path[2:])
	}
	return api.OK(http.StatusOK, s.showDriver(c, h.At(s.maxMinor()), true)), nil
}

func (s *Server) showDriver(c *api.Call, h conductor.HardwareType, detail bool) api.Ordered {
	out := api.Ordered{{"name", h.Name}, {"hosts", []any{s.host()}}, {"links", c.Links("drivers/" + h.Name)}}
	if c.Minor >= 14 {
		out = append(out, api.Member{"properties", c.Links("drivers/" + h.Name + "/properties")})
	}
	if c.Minor >= 30 {
		out = append(out, api.Member{"type", "dynamic"})
	}
	if !detail || c.Minor < 30 {
		return out
	}
	for _, kind := range api.InterfaceKinds {
		if kind == "firmware" && c.Minor < 86 {
			continue
		}
		out = append(out, api.Member{"default_" + kind + "_interface", h.Interfaces[kind][0]},
			api.Member{"enabled_" + kind + "_interfaces", slices.DeleteFunc(slices.Clone(h.Interfaces[kind]), func(name string) bool {
				return name == switches.Interface && !s.SwitchPorts
			})})
	}
	return out
}

// routeVendor answers the vendor methods of a node or a driver: there are none.
func routeVendor(c *api.Call, rest []string) (api.Reply, error) {
	switch {
	case len(rest) == 1 && rest[0] == "methods" && c.Method == http.MethodGet:
		return api.OK(http.StatusOK, api.Ordered{}), nil
	case len(rest) == 0 && c.Query.Get("method") == "":
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: method")
	}
	return api.Reply{}, api.Fault(http.StatusBadRequest, "No handler for method %s", strings.Join(append(rest, c.Query["method"]...), "/"))
}

// routeDriver answers /v1/drivers/{driver}/{part}. Real descriptions are sentences.
func routeDriver(c *api.Call, driver string, rest []string) (api.Reply, error) {
	described := func(names []string) api.Reply {
		out := api.Ordered{}
		for _, name := range names {
			out = append(out, api.Member{name, strings.ReplaceAll(name, "_", " ")})
		}
		return api.OK(http.StatusOK, out)
	}
	switch path := strings.Join(rest, "/"); {
	case rest[0] == "vendor_passthru":
		return routeVendor(c, rest[1:])
	case c.Method != http.MethodGet:
	case path == "properties" && driver == "fake-hardware": // its interfaces need nothing else
		return api.OK(http.StatusOK, api.Ordered{{"B1", "B1 description. Required."}, {"B2", "B2 description. Required."}}), nil
	case path == "properties":
		return described(append(slices.Clone(conductor.DriverProperties[driver]), conductor.AgentProperties...)), nil
	case path == "raid/logical_disk_properties" && c.Minor < 12:
		return api.Reply{}, api.NotAcceptable()
	case path == "raid/logical_disk_properties":
		return described(conductor.RAIDProperties), nil
	}
	return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
}

// host is the name of the only conductor as the API shows it.
func (s *Server) host() string {
	if s.legacy() {
		return conductor.Host
	}
	return conductor.Host + ":8089"
}

func (s *Server) routeConductors(c *api.Call) (api.Reply, error) {
	if c.Minor < 49 {
		if s.legacy() {
			return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
		}
		return api.Reply{}, api.Fault(http.StatusNotFound, "The API is not supported for this version")
	}
	if c.Method != http.MethodGet {
		return api.Reply{}, api.MethodNotAllowed("GET")
	}
	if len(c.Path) > 2 || len(c.Path) == 2 && c.Path[1] != s.host() {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Conductor %s could not be found.", c.Path[len(c.Path)-1])
	}
	names := []string{}
	for _, h := range conductor.HardwareTypes {
		names = append(names, h.Name)
	}
	summary := []string{"hostname", "conductor_group", "alive"}
	if len(c.Path) == 2 {
		summary = nil
	}
	fields, err := c.Fields(summary...)
	if err != nil {
		return api.Reply{}, err
	}
	shown, err := api.Ordered{
		{"hostname", s.host()},
		{"conductor_group", ""},
		{"alive", true},
		{"created_at", api.Timestamp(s.conductor.Now)},
		{"updated_at", api.Timestamp(s.conductor.Now)},
		{"drivers", names},
		{"links", c.Links("conductors/" + s.host())},
	}.Select(fields)
	if err == nil && len(c.Path) == 1 {
		shown = api.Ordered{{"conductors", []any{shown}}}
	}
	return api.OK(http.StatusOK, shown), err
}

// chassis groups nodes. It is the only resource of Ironic that a client can create under its own UUID without a conductor.
type chassis struct {
	uuid, createdAt, updatedAt string
	description                any
	extra                      map[string]any
}

func (s *Server) findChassis(uuid string) *chassis {
	for _, ch := range s.chassis {
		if ch.uuid == uuid {
			return ch
		}
	}
	return nil
}

func (ch *chassis) show(c *api.Call) api.Ordered {
	return api.Ordered{
		{"uuid", ch.uuid},
		{"created_at", ch.createdAt},
		{"updated_at", api.OrNull(ch.updatedAt)},
		{"extra", ch.extra},
		{"nodes", []any{c.Links("chassis/" + ch.uuid + "/nodes")}},
		{"description", ch.description},
		{"links", c.Links("chassis/" + ch.uuid)},
	}
}

var chassisSchema = api.Schema{Name: "chassis", Members: map[string]api.Kind{
	"uuid": api.TextKind, "extra": api.ObjectKind, "description": {Types: []string{"string", "null"}, MaxLength: 255},
}}

func (s *Server) routeChassis(c *api.Call) (api.Reply, error) {
	if len(c.Path) == 1 && c.Method == http.MethodPost {
		return s.createChassis(c)
	}
	detail := len(c.Path) == 2 && c.Path[1] == "detail"
	if len(c.Path) == 1 || detail {
		if c.Method != http.MethodGet {
			return api.Reply{}, api.MethodNotAllowed("GET, POST")
		}
		return s.listChassis(c, detail)
	}
	if !api.IsUUID(c.Path[1]) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID for chassis_uuid: %s", c.Path[1])
	}
	ch := s.findChassis(c.Path[1])
	if ch == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Chassis %s could not be found.", c.Path[1])
	}
	switch c.Method {
	case http.MethodGet:
		shown, err := selected(c, ch.show(c))
		return api.OK(http.StatusOK, shown), err
	case http.MethodPatch:
		return s.patchChassis(c, ch)
	case http.MethodDelete:
		return api.Done(http.StatusNoContent), s.deleteChassis(ch)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

// selected returns the fields of a resource that the query of its own path selects.
func selected(c *api.Call, all api.Ordered) (api.Ordered, error) {
	if err := c.Accept("fields"); err != nil {
		return nil, err
	}
	fields, err := c.Fields()
	if err != nil {
		return nil, err
	}
	return all.Select(fields)
}

func (s *Server) listChassis(c *api.Call, detail bool) (api.Reply, error) {
	fields, err := c.Fields("uuid", "description")
	if err != nil {
		return api.Reply{}, err
	}
	if detail {
		fields = nil
	}
	return api.Listing[*chassis]{
		Key: "chassis", Noun: "Chassis", Fields: fields,
		ID:    func(ch *chassis) string { return ch.uuid },
		Known: func(id string) bool { return s.findChassis(id) != nil },
		Show:  func(ch *chassis) (any, error) { return ch.show(c).Select(fields) },
	}.Reply(c, s.chassis)
}

func (s *Server) createChassis(c *api.Call) (api.Reply, error) {
	body, err := c.Object("chassis")
	if err != nil {
		return api.Reply{}, err
	}
	if err := chassisSchema.Check(body); err != nil {
		return api.Reply{}, err
	}
	uuid := api.Text(body["uuid"])
	if uuid == "" {
		uuid = api.NewUUID()
	}
	if !api.IsUUID(uuid) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID for uuid: %s", uuid)
	}
	if s.findChassis(uuid) != nil {
		return api.Reply{}, api.Fault(http.StatusConflict, "A chassis with UUID %s already exists.", uuid)
	}
	ch := &chassis{
		uuid: uuid, createdAt: api.Timestamp(s.conductor.Now), description: body["description"],
		extra: api.Object(body["extra"]),
	}
	s.chassis = append(s.chassis, ch)
	return c.Created("chassis/"+uuid, ch.show(c)), nil
}

func (s *Server) patchChassis(c *api.Call, ch *chassis) (api.Reply, error) {
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	if err := api.CheckPatchable(ops, []string{"extra", "description"}); err != nil {
		return api.Reply{}, err
	}
	document := map[string]any{"extra": api.Clone(ch.extra), "description": ch.description}
	if err := api.ApplyPatch(document, ops); err != nil {
		return api.Reply{}, err
	}
	if err := chassisSchema.Check(document); err != nil {
		return api.Reply{}, err
	}
	ch.extra, ch.description, ch.updatedAt = api.Object(document["extra"]), document["description"], api.Timestamp(s.conductor.Now)
	return api.OK(http.StatusOK, ch.show(c)), nil
}

func (s *Server) deleteChassis(ch *chassis) error {
	for _, n := range s.conductor.Nodes {
		if n.Str("chassis_uuid") == ch.uuid {
			return api.Fault(http.StatusBadRequest, "Cannot complete the requested action because chassis %s contains nodes.", ch.uuid)
		}
	}
	s.chassis = slices.DeleteFunc(s.chassis, func(other *chassis) bool { return other == ch })
	return nil
}
