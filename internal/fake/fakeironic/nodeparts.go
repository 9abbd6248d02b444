package fakeironic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/switches"
)

func (s *Server) validation(n *conductor.Node) (api.Reply, error) {
	if err := s.conductor.CheckInterfaces(n); err != nil {
		return api.Reply{}, err
	}
	var out api.Ordered
	for _, kind := range api.InterfaceKinds {
		if kind == "vendor" || kind == "firmware" && s.legacy() {
			continue
		}
		result := api.Ordered{{"result", true}}
		if reason := s.conductor.InterfaceFault(n, kind); reason != "" {
			result = api.Ordered{{"result", false}, {"reason", reason}}
		}
		out = append(out, api.Member{kind, result})
	}
	return api.OK(http.StatusOK, out), nil
}

func (s *Server) showBIOS(c *api.Call, n *conductor.Node) (api.Reply, error) {
	for _, key := range []string{"detail", "fields"} {
		switch {
		case c.Minor >= 74 || !c.Query.Has(key):
		case s.legacy():
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid query parameter ?%s=True received.", key)
		default:
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Schema error: Additional properties are not allowed ('%s' was "+
				"unexpected)", key)
		}
	}
	if err := c.Accept("detail", "fields"); err != nil {
		return api.Reply{}, err
	}
	detailed, _ := api.ParseBool(c.Query.Get("detail"))
	list := []any{}
	for _, name := range api.SortedKeys(n.BIOSSettings()) {
		list = append(list, s.setting(c, n, name, detailed))
	}
	return api.OK(http.StatusOK, api.Ordered{{"bios", list}}), nil
}

// setting returns a BIOS setting as the API shows it.
func (s *Server) setting(c *api.Call, n *conductor.Node, name string, detailed bool) api.Ordered {
	setting := n.Machine.BIOS[name]
	shown := api.Ordered{
		{"created_at", api.Timestamp(s.conductor.Now)},
		{"updated_at", nil},
		{"name", name},
		{"value", setting.Value},
		{"links", c.Links("nodes/" + c.Path[1] + "/bios/" + name)},
	}
	if detailed {
		shown = append(shown, setting.Registry()...)
	}
	return shown
}

func (s *Server) showSetting(c *api.Call, n *conductor.Node, name string) (api.Reply, error) {
	if _, known := n.BIOSSettings()[name]; !known {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Node %s doesn't have a BIOS setting '%s'", n.Str("uuid"), name)
	}
	return api.OK(http.StatusOK, api.Ordered{{name, s.setting(c, n, name, c.Minor >= 74)}}), nil
}

func (s *Server) showFirmware(c *api.Call, n *conductor.Node) api.Reply {
	list := []any{}
	for _, name := range api.SortedKeys(n.Components()) {
		part := n.Machine.Firmware[name]
		shown := api.Ordered{
			{"created_at", api.Timestamp(s.conductor.Now)},
			{"updated_at", nil},
			{"component", name},
			{"initial_version", part.Initial},
			{"current_version", part.Current},
			{"last_version_flashed", api.OrNull(part.Flashed)},
		}
		if c.Minor >= 114 {
			shown = append(shown, api.Ordered{
				{"vendor", api.OrNull(part.Vendor)},
				{"model", api.OrNull(part.Model)},
				{"serial_number", api.OrNull(part.Serial)},
			}...)
		}
		list = append(list, shown)
	}
	return api.OK(http.StatusOK, api.Ordered{{"firmware", list}})
}

// longestEvent is the length to which a list without detail cuts the text of an event.
const longestEvent = 255

func (s *Server) showHistory(c *api.Call, n *conductor.Node) api.Reply {
	detail, _ := api.ParseBool(c.Query.Get("detail"))
	list := []any{}
	for _, entry := range n.History {
		list = append(list, showEntry(c, n, entry, detail))
	}
	return api.OK(http.StatusOK, api.Ordered{{"history", list}})
}

// showEntry returns an entry of the history as the API shows it.
func showEntry(c *api.Call, n *conductor.Node, entry api.Ordered, detail bool) api.Ordered {
	since := map[string]int{"project": 113, "state": 115, "target_provision_state": 115, "duration_seconds": 115}
	shown := api.Ordered{}
	for _, field := range entry {
		switch short := slices.Contains([]string{"uuid", "created_at", "severity", "event"}, field.Key); {
		case !detail && !short, c.Minor < since[field.Key]:
			continue
		case !detail && field.Key == "event" && len(api.Text(field.Value)) > longestEvent:
			field.Value = api.Text(field.Value)[:longestEvent-4] + "..."
		}
		shown = append(shown, field)
	}
	href := c.Base + "/v1/nodes/" + n.Str("uuid") + "/history/" + api.Text(entry[0].Value)
	return append(shown, api.Member{"links", []any{map[string]any{"href": href, "rel": "self"}}})
}

func (s *Server) showEvent(c *api.Call, n *conductor.Node, uuid string) (api.Reply, error) {
	at := slices.IndexFunc(n.History, func(entry api.Ordered) bool { return entry[0].Value == uuid })
	if at < 0 {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Node history record %s could not be found.", uuid)
	}
	return api.OK(http.StatusOK, showEntry(c, n, n.History[at], true)), nil
}

// nodeRecords answers the read-only parts of a node.
func (s *Server) nodeRecords(c *api.Call, n *conductor.Node, part string, rest []string) (api.Reply, error) {
	switch {
	case len(rest) == 0:
	case len(rest) == 1 && part == "bios" && c.Minor >= 40:
		return s.showSetting(c, n, rest[0])
	case len(rest) == 1 && part == "history" && c.Minor >= 78:
		return s.showEvent(c, n, rest[0])
	default:
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	switch part {
	case "inventory":
		if c.Minor < 81 {
			return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
		}
		if n.Inventory == nil {
			return api.Reply{}, api.Fault(http.StatusNotFound, "Node inventory record for node %d could not be found.", n.Order)
		}
		return api.OK(http.StatusOK, n.Inventory), nil
	case "bios":
		if c.Minor >= 40 {
			return s.showBIOS(c, n)
		}
	case "history":
		if c.Minor >= 78 {
			return s.showHistory(c, n), nil
		}
	case "firmware":
		if c.Minor >= 86 {
			return s.showFirmware(c, n), nil
		}
		if !s.legacy() {
			return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
		}
	case "children":
		if c.Minor >= 83 {
			return api.OK(http.StatusOK, api.Ordered{
				{"children", s.children(n)},
				{"links", api.Ordered{{"href", c.Base + "/v1/nodes?parent_node=" + n.Str("uuid")}, {"rel", "children"}}},
			}), nil
		}
	}
	return api.Reply{}, api.Fault(http.StatusBadRequest, "Field %s is not a valid field.", part)
}

// children returns the UUIDs of the nodes with the parent n.
func (s *Server) children(n *conductor.Node) []string {
	uuids := []string{}
	for _, other := range s.conductor.Nodes {
		if other.Str("parent_node") == n.Str("uuid") {
			uuids = append(uuids, other.Str("uuid"))
		}
	}
	return uuids
}

// routeVIFs answers /v1/nodes/{node}/vifs. The noop network interface accepts attachments and does not store them.
func (s *Server) routeVIFs(c *api.Call, n *conductor.Node, rest []string) (api.Reply, error) {
	if c.Minor < 28 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	keeps := n.Uses("network") != "noop" && n.Uses("network") != switches.Interface
	switch {
	case c.Method == http.MethodGet && len(rest) == 0:
		attached := []any{}
		for _, id := range s.conductor.VIFs(n) {
			attached = append(attached, map[string]any{"id": id})
		}
		return api.OK(http.StatusOK, api.Ordered{{"vifs", attached}}), nil
	case c.Method == http.MethodPost && len(rest) == 0:
		body, err := c.Object("vif")
		if err != nil {
			return api.Reply{}, err
		}
		if api.Text(body["id"]) == "" {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Schema error for vif: 'id' is a required property")
		}
		if id := api.Text(body["id"]); !api.IsUUID(id) && !api.ValidName(id) {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID or name for id: %s", id)
		}
		if body["port_uuid"] != nil && body["portgroup_uuid"] != nil && c.Minor >= 67 {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Cannot specify both port_uuid and portgroup_uuid")
		}
		if err := n.Locked(); err != nil || !keeps {
			return api.Done(http.StatusNoContent), err
		}
		return api.Done(http.StatusNoContent), s.conductor.AttachVIF(n, api.Text(body["id"]),
			conductor.Place{Port: api.Text(body["port_uuid"]), Group: api.Text(body["portgroup_uuid"])})
	case c.Method == http.MethodDelete && len(rest) == 1:
		if err := n.Locked(); err != nil || !keeps {
			return api.Done(http.StatusNoContent), err
		}
		return api.Done(http.StatusNoContent), s.conductor.DetachVIF(n, rest[0])
	}
	return api.Reply{}, api.MethodNotAllowed("GET, POST")
}

// API versions of virtual media.
const (
	vmediaMinor     = 89
	vmediaListMinor = 93
)

// vmediaDevices are the device types of virtual media. The machines of the fake have only a CD drive.
var vmediaDevices = []string{machine.DeviceDisk, machine.DeviceCDROM, "floppy"}

func (s *Server) routeVmedia(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if s.maxMinor() < vmediaMinor {
		return s.vmediaBeforeItsTime(c, n)
	}
	if c.Minor < vmediaMinor {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	switch c.Method {
	case http.MethodGet:
		return s.listVmedia(c, n)
	case http.MethodPost:
		return s.attachVmedia(c, n)
	case http.MethodDelete:
		return s.detachVmedia(c, n)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, POST")
}

// vmediaBeforeItsTime answers as an Ironic without virtual media: as for any unknown part of a node.
func (s *Server) vmediaBeforeItsTime(c *api.Call, n *conductor.Node) (api.Reply, error) {
	switch c.Method {
	case http.MethodGet:
		return s.nodeRecords(c, n, "vmedia", nil)
	case http.MethodPost:
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Schema error for node: %s is not of type 'object'", api.PyRepr(n.Str("uuid")))
	case http.MethodDelete:
		return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
}

func (s *Server) listVmedia(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if c.Minor < vmediaListMinor {
		return api.Reply{}, api.Fault(http.StatusNotFound, "The resource could not be found.")
	}
	if err := s.conductor.CheckVmedia(n); err != nil {
		return api.Reply{}, err
	}
	if !n.HasVmedia() {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", noVmedia(n, "get_virtual_media"))
	}
	return api.OK(http.StatusOK, []any{api.Ordered{
		{"media_types", []string{"CD", "DVD"}}, {"inserted", n.Machine.Drive != ""}, {"image", n.Machine.Image},
	}}), nil
}

// attachVmedia inserts an image after the answer. If that fails, it sets last_error.
func (s *Server) attachVmedia(c *api.Call, n *conductor.Node) (api.Reply, error) {
	body, err := c.Object("vmedia")
	if err != nil {
		return api.Reply{}, err
	}
	if err := checkVmediaBody(body); err != nil {
		return api.Reply{}, err
	}
	if err := c.Accept(); err != nil {
		return api.Reply{}, err
	}
	device, url := api.Text(body["device_type"]), api.Text(body["image_url"])
	scheme, _, found := strings.Cut(url, "://")
	if !found {
		scheme = ""
	}
	if !slices.Contains([]string{"http", "https", "nfs", "cifs"}, scheme) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Unsupported or missing URL scheme: %s", scheme)
	}
	return s.changeVmedia(n, func() string {
		reason := s.conductor.FetchFault(url)
		switch {
		case !conductor.PublishesImages(n):
			reason = "Publishing images is not supported for driver " + n.Str("driver")
		case reason != "":
		case device != machine.DeviceCDROM:
			reason = fmt.Sprintf("No suitable virtual media device found for node %s to mount image %s", n.Str("uuid"),
				s.conductor.Published(n, device))
		}
		if reason != "" {
			return fmt.Sprintf("Could not attach device %s to node %s: %s", device, n.Str("uuid"), reason)
		}
		n.Machine.Insert(url, s.conductor.Published(n, device))
		return ""
	})
}

// checkVmediaBody checks the body of a request to attach an image.
func checkVmediaBody(body map[string]any) error {
	shape := api.Schema{
		Name:     "vmedia",
		Members:  map[string]api.Kind{"device_type": api.StringKind, "image_download_source": api.StringKind, "image_url": api.StringKind},
		Required: []string{"device_type", "image_url"},
	}
	if err := shape.Check(body); err != nil {
		return err
	}
	for _, choice := range []struct {
		key     string
		allowed []string
	}{{"device_type", vmediaDevices}, {"image_download_source", []string{"http", "local", "swift"}}} {
		if value, given := body[choice.key]; given && !slices.Contains(choice.allowed, api.Text(value)) {
			return shape.Fault("%s is not one of %s", api.PyRepr(value), api.PyRepr(api.Clone(choice.allowed)))
		}
	}
	return nil
}

// detachVmedia empties the drives, or those of the given types, after the answer. If that fails, it sets last_error.
func (s *Server) detachVmedia(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if err := c.Accept("device_types"); err != nil {
		return api.Reply{}, err
	}
	types := api.SplitList(c.Query["device_types"])
	unknown := slices.DeleteFunc(slices.Clone(types), func(device string) bool { return slices.Contains(vmediaDevices, device) })
	if len(unknown) > 0 {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid device type(s) %s (valid are %s)", strings.Join(unknown, ", "),
			strings.Join(vmediaDevices, ", "))
	}
	which := "None"
	if c.Query.Has("device_types") {
		which = api.PyRepr(api.Clone(types))
	}
	return s.changeVmedia(n, func() string {
		if !n.HasVmedia() {
			return fmt.Sprintf("Could not detach device(s) %s from node %s: %s", which, n.Str("uuid"), noVmedia(n, "detach_virtual_media"))
		}
		if which == "None" || slices.Contains(types, machine.DeviceCDROM) {
			n.Machine.Insert("", "")
		}
		return ""
	})
}

// changeVmedia checks a request about virtual media, and then does it.
func (s *Server) changeVmedia(n *conductor.Node, change func() string) (api.Reply, error) {
	if err := n.Locked(); err != nil {
		return api.Reply{}, err
	}
	if err := s.conductor.CheckVmedia(n); err != nil {
		return api.Reply{}, err
	}
	s.conductor.ChangeLater(n, change)
	return api.Done(http.StatusNoContent), nil
}

// noVmedia is the error of a management interface without virtual media.
func noVmedia(n *conductor.Node, call string) string {
	return "Driver " + n.Str("driver") + " does not support " + call + " (disabled or not implemented)."
}
