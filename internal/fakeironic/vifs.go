package fakeironic

import (
	"net/http"
	"slices"
)

// tenantVIF is the key of a port's internal_info that names the attached VIF.
const tenantVIF = "tenant_vif_port_id"

// routeVIFs answers /v1/nodes/{node}/vifs. The noop network interface accepts attachments and does not store them.
func (s *Server) routeVIFs(c *call, n *node, rest []string) (reply, error) {
	if c.minor < 28 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	keeps := n.uses("network") != "noop"
	switch {
	case c.method == http.MethodGet && len(rest) == 0:
		attached := []any{}
		for _, p := range s.portsWithVIF(n) {
			attached = append(attached, map[string]any{"id": p.vif()})
		}
		return ok(http.StatusOK, ordered{{"vifs", attached}}), nil
	case c.method == http.MethodPost && len(rest) == 0:
		body, err := c.object("vif")
		if err != nil {
			return reply{}, err
		}
		if text(body["id"]) == "" {
			return reply{}, fault(http.StatusBadRequest, "Schema error for vif: 'id' is a required property")
		}
		if body["port_uuid"] != nil && body["portgroup_uuid"] != nil && c.minor >= 67 {
			return reply{}, fault(http.StatusBadRequest, "Cannot specify both port_uuid and portgroup_uuid")
		}
		if err := n.locked(); err != nil || !keeps {
			return done(http.StatusNoContent), err
		}
		return done(http.StatusNoContent), s.attachVIF(n, text(body["id"]), text(body["port_uuid"]))
	case c.method == http.MethodDelete && len(rest) == 1:
		if err := n.locked(); err != nil || !keeps {
			return done(http.StatusNoContent), err
		}
		return done(http.StatusNoContent), s.detachVIF(n, rest[0])
	}
	return reply{}, methodNotAllowed("GET, POST")
}

// vif returns the VIF that is attached to a port, "" if there is none.
func (p *port) vif() string { return text(object(p.fields["internal_info"])[tenantVIF]) }

// setVIF attaches a VIF to a port, or detaches it if the VIF is empty.
func (p *port) setVIF(vif string) {
	info := object(clone(p.fields["internal_info"]))
	delete(info, tenantVIF)
	if vif != "" {
		info[tenantVIF] = vif
	}
	p.fields["internal_info"] = info
}

// portsWithVIF returns the ports of a node to which a VIF is attached.
func (s *Server) portsWithVIF(n *node) (found []*port) {
	for _, p := range s.ports {
		if p.node == n && p.vif() != "" {
			found = append(found, p)
		}
	}
	return found
}

// attachVIF attaches a VIF to a free port of the node, one with PXE if there is one, or to the port that the client has named.
func (s *Server) attachVIF(n *node, vif, uuid string) error {
	var free []*port
	for _, p := range s.ports {
		switch {
		case p.node != n:
		case p.vif() == vif:
			return fault(http.StatusConflict, "Unable to attach VIF because VIF %s is already attached to Ironic Port %s", vif, p.uuid)
		case p.vif() == "" && (uuid == "" || p.uuid == uuid):
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return fault(http.StatusBadRequest, "Unable to attach VIF %s, not enough free physical ports.", vif)
	}
	at := max(0, slices.IndexFunc(free, func(p *port) bool { return p.fields["pxe_enabled"] == true }))
	free[at].setVIF(vif)
	return nil
}

// detachVIF detaches a VIF from the node.
func (s *Server) detachVIF(n *node, vif string) error {
	for _, p := range s.portsWithVIF(n) {
		if p.vif() == vif {
			p.setVIF("")
			return nil
		}
	}
	return fault(http.StatusBadRequest, "Unable to detach VIF %s from node %s because it is not attached to it.", vif, n.str("uuid"))
}

// forgetVIFs detaches all VIFs of a node that is undeployed.
func (s *Server) forgetVIFs(n *node) {
	for _, p := range s.portsWithVIF(n) {
		p.setVIF("")
	}
}

// networkDefect returns why the network interface neutron cannot connect the node to its networks, "" if it can.
func (s *Server) networkDefect(n *node) string {
	if n.uses("network") != "neutron" || len(s.portsWithVIF(n)) > 0 {
		return ""
	}
	return "Deploy step deploy.deploy failed: No neutron ports or portgroups are associated with node " + n.str("uuid")
}
