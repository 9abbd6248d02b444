package fakeironic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// API versions of virtual media.
const (
	vmediaMinor     = 89
	vmediaListMinor = 93
)

// vmediaDevices are the device types of virtual media. The machines of the fake have only a CD drive.
var vmediaDevices = []string{deviceDisk, deviceCDROM, "floppy"}

// routeVmedia answers /v1/nodes/{node}/vmedia.
func (s *Server) routeVmedia(c *call, n *node) (reply, error) {
	if s.maxMinor() < vmediaMinor {
		return s.vmediaBeforeItsTime(c, n)
	}
	if c.minor < vmediaMinor {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	switch c.method {
	case http.MethodGet:
		return s.listVmedia(c, n)
	case http.MethodPost:
		return s.attachVmedia(c, n)
	case http.MethodDelete:
		return s.detachVmedia(c, n)
	}
	return reply{}, methodNotAllowed("DELETE, GET, POST")
}

// vmediaBeforeItsTime answers as an Ironic without virtual media: as for any unknown part of a node.
func (s *Server) vmediaBeforeItsTime(c *call, n *node) (reply, error) {
	switch c.method {
	case http.MethodGet:
		return s.nodeRecords(c, n, "vmedia")
	case http.MethodPost:
		return reply{}, fault(http.StatusBadRequest, "Schema error for node: %s is not of type 'object'", pyRepr(n.str("uuid")))
	case http.MethodDelete:
		return reply{}, fault(http.StatusNotFound, "Resource could not be found.")
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH, POST")
}

// listVmedia shows the drives of the machine.
func (s *Server) listVmedia(c *call, n *node) (reply, error) {
	if c.minor < vmediaListMinor {
		return reply{}, fault(http.StatusNotFound, "The resource could not be found.")
	}
	if err := n.checkVmedia(); err != nil {
		return reply{}, err
	}
	if !n.hasVmedia() {
		return reply{}, fault(http.StatusBadRequest, "%s", noVmedia(n, "get_virtual_media"))
	}
	return ok(http.StatusOK, []any{ordered{
		{"media_types", []string{"CD", "DVD"}}, {"inserted", n.machine.drive != ""}, {"image", n.machine.image},
	}}), nil
}

// attachVmedia inserts an image after the answer. If that fails, it sets last_error.
func (s *Server) attachVmedia(c *call, n *node) (reply, error) {
	body, err := c.object("vmedia")
	if err != nil {
		return reply{}, err
	}
	if err := checkVmediaBody(body); err != nil {
		return reply{}, err
	}
	if err := c.accept(); err != nil {
		return reply{}, err
	}
	device, url := text(body["device_type"]), text(body["image_url"])
	scheme, _, found := strings.Cut(url, "://")
	if !found {
		scheme = ""
	}
	if !slices.Contains([]string{"http", "https", "nfs", "cifs"}, scheme) {
		return reply{}, fault(http.StatusBadRequest, "Unsupported or missing URL scheme: %s", scheme)
	}
	return s.changeVmedia(n, func() string {
		reason := s.fetchFault(url)
		switch {
		case !publishesImages(n):
			reason = "Publishing images is not supported for driver " + n.str("driver")
		case reason != "":
		case device != deviceCDROM:
			reason = fmt.Sprintf("No suitable virtual media device found for node %s to mount image %s", n.str("uuid"), s.published(n, device))
		}
		if reason != "" {
			return fmt.Sprintf("Could not attach device %s to node %s: %s", device, n.str("uuid"), reason)
		}
		n.machine.insert(url, s.published(n, device))
		return ""
	})
}

// checkVmediaBody checks the body of a request to attach an image.
func checkVmediaBody(body map[string]any) error {
	shape := schema{
		name:     "vmedia",
		members:  map[string]kind{"device_type": stringKind, "image_download_source": stringKind, "image_url": stringKind},
		required: []string{"device_type", "image_url"},
	}
	if err := shape.check(body); err != nil {
		return err
	}
	for _, choice := range []struct {
		key     string
		allowed []string
	}{{"device_type", vmediaDevices}, {"image_download_source", []string{"http", "local", "swift"}}} {
		if value, given := body[choice.key]; given && !slices.Contains(choice.allowed, text(value)) {
			return shape.fault("%s is not one of %s", pyRepr(value), pyRepr(clone(choice.allowed)))
		}
	}
	return nil
}

// detachVmedia empties the drives, or those of the given types, after the answer. If that fails, it sets last_error.
func (s *Server) detachVmedia(c *call, n *node) (reply, error) {
	if err := c.accept("device_types"); err != nil {
		return reply{}, err
	}
	types := splitList(c.query["device_types"])
	unknown := slices.DeleteFunc(slices.Clone(types), func(device string) bool { return slices.Contains(vmediaDevices, device) })
	if len(unknown) > 0 {
		return reply{}, fault(http.StatusBadRequest, "Invalid device type(s) %s (valid are %s)", strings.Join(unknown, ", "),
			strings.Join(vmediaDevices, ", "))
	}
	which := "None"
	if c.query.Has("device_types") {
		which = pyRepr(clone(types))
	}
	return s.changeVmedia(n, func() string {
		if !n.hasVmedia() {
			return fmt.Sprintf("Could not detach device(s) %s from node %s: %s", which, n.str("uuid"), noVmedia(n, "detach_virtual_media"))
		}
		if which == "None" || slices.Contains(types, deviceCDROM) {
			n.machine.insert("", "")
		}
		return ""
	})
}

// changeVmedia checks a request about virtual media, and then does it.
func (s *Server) changeVmedia(n *node, change func() string) (reply, error) {
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if err := n.checkVmedia(); err != nil {
		return reply{}, err
	}
	s.changeLater(n, change)
	return done(http.StatusNoContent), nil
}

// changeLater locks the node for one StepTime and then calls change, which returns the last_error.
func (s *Server) changeLater(n *node, change func() string) {
	n.put("last_error", nil)
	n.put("reservation", conductorHost)
	n.put("updated_at", timestamp(s.now))
	s.after(s.StepTime, func() {
		n.put("reservation", nil)
		n.put("last_error", orNull(change()))
		n.put("updated_at", timestamp(s.now))
	})
}

// checkVmedia makes Ironic's checks of the node before requests about virtual media.
func (n *node) checkVmedia() error {
	if err := n.checkInterfaces(); err != nil {
		return err
	}
	if reason := n.bmcFault("management"); reason != "" {
		return fault(http.StatusBadRequest, "%s", reason)
	}
	if n.hasVmedia() && !publishesImages(n) {
		return unexpectedRPC()
	}
	return nil
}

// hasVmedia reports whether the node's management interface supports virtual media.
func (n *node) hasVmedia() bool { return strings.HasSuffix(n.uses("management"), "redfish") }

// noVmedia is the error of a management interface without virtual media.
func noVmedia(n *node, call string) string {
	return "Driver " + n.str("driver") + " does not support " + call + " (disabled or not implemented)."
}
