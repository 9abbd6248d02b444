package conductor

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/switches"
)

// tenantVIF is the key of the internal_info of a port or port group that names the attached VIF.
const tenantVIF = "tenant_vif_port_id"

// VIF returns the VIF that is attached to a port, "" if there is none.
func (p *Port) VIF() string { return api.Text(api.Object(p.Fields["internal_info"])[tenantVIF]) }

// setVIF attaches a VIF to a port, or detaches it if the VIF is empty.
func (p *Port) setVIF(vif string) {
	info := api.Object(api.Clone(p.Fields["internal_info"]))
	delete(info, tenantVIF)
	if vif != "" {
		info[tenantVIF] = vif
	}
	p.Fields["internal_info"] = info
}

// Group is a port group, as far as it concerns networks.
type Group struct {
	UUID, Address string
	Extra         map[string]any
}

// InternalInfoOf returns internal_info of a port group of the node.
func (n *Node) InternalInfoOf(group string) map[string]any {
	if vif := n.groupVIFs[group]; vif != "" {
		return map[string]any{tenantVIF: vif}
	}
	return map[string]any{}
}

// socket is what a VIF can be attached to: a port or a port group.
type socket struct {
	uuid, address, vif string
	port               *Port   // nil for a group
	members            []*Port // of the group; the port itself
}

// set attaches a VIF, or detaches the one that is attached if vif is empty.
func (s socket) set(n *Node, vif string) {
	switch {
	case s.port != nil:
		s.port.setVIF(vif)
	case vif == "":
		delete(n.groupVIFs, s.uuid)
	default:
		if n.groupVIFs == nil {
			n.groupVIFs = map[string]string{}
		}
		n.groupVIFs[s.uuid] = vif
	}
}

// has reports whether a port of the socket has an attribute with a value.
func (s socket) has(field string, value any) bool {
	return slices.ContainsFunc(s.members, func(p *Port) bool { return p.Fields[field] == value })
}

// refused reports whether a switch refuses to connect the socket. A name stands for a switch that does not answer.
func (s socket) refused() bool {
	return slices.ContainsFunc(s.members, func(p *Port) bool {
		return api.Object(p.Fields["local_link_connection"])["switch_info"] == "refuse"
	})
}

// sockets returns the ports of a node, and then its port groups.
func (c *Conductor) sockets(n *Node) (ports, groups []socket) {
	members := map[string][]*Port{}
	for _, p := range c.Ports {
		if p.Node == n {
			ports = append(ports, socket{uuid: p.Uuid, address: p.Address, vif: p.VIF(), port: p, members: []*Port{p}})
			members[api.Text(p.Fields["portgroup_uuid"])] = append(members[api.Text(p.Fields["portgroup_uuid"])], p)
		}
	}
	for _, g := range c.Groups(n) {
		groups = append(groups, socket{uuid: g.UUID, address: g.Address, vif: n.groupVIFs[g.UUID], members: members[g.UUID]})
	}
	return ports, groups
}

// connected returns the sockets of a node to which a VIF is attached.
func (c *Conductor) connected(n *Node) []socket {
	ports, groups := c.sockets(n)
	return slices.DeleteFunc(slices.Concat(ports, groups), func(s socket) bool { return s.vif == "" })
}

// VIFs returns the VIFs of a node.
func (c *Conductor) VIFs(n *Node) (ids []string) {
	for _, s := range c.connected(n) {
		ids = append(ids, s.vif)
	}
	return ids
}

// Place is what a request names for a VIF: the UUID of a port, of a port group, or nothing.
type Place struct{ Port, Group string }

// candidates returns what a VIF can be attached to, as Ironic's _get_free_portgroups_and_ports does. physical is the physical network of
// the VIF; "" if that does not matter.
func (c *Conductor) candidates(n *Node, vif, physical string, at Place) (free []socket, err error) {
	ports, groups := c.sockets(n)
	inGroup, usedGroups := map[string][]socket{}, map[string]bool{}
	for _, s := range ports {
		group, network := api.Text(s.port.Fields["portgroup_uuid"]), api.Text(s.port.Fields["physical_network"])
		switch {
		case at.Port != "" && at.Port != s.uuid:
		case n.Uses("network") == "neutron" && len(api.Object(s.port.Fields["local_link_connection"])) == 0:
		case s.vif == vif:
			return nil, alreadyAttached(vif, "Port", s.uuid)
		case s.vif != "":
			usedGroups[group] = true
		case physical != "" && network != "" && network != physical:
		case group == "" && at.Group == "":
			free = append(free, s)
		default:
			inGroup[group] = append(inGroup[group], s)
		}
	}
	if at.Port != "" {
		return free, nil
	}
	for _, s := range groups {
		switch {
		case at.Group != "" && at.Group != s.uuid:
		case s.vif == vif:
			return nil, alreadyAttached(vif, "Portgroup", s.uuid)
		case s.vif != "":
		case usedGroups[s.uuid] && at.Group == "":
			free = append(free, inGroup[s.uuid]...)
		case !usedGroups[s.uuid] && len(inGroup[s.uuid]) > 0:
			free = append(free, s)
		}
	}
	return free, nil
}

func alreadyAttached(vif, kind, uuid string) error {
	return api.Fault(http.StatusConflict, "Unable to attach VIF because VIF %s is already attached to Ironic %s %s", vif, kind, uuid)
}

// rank says which of the candidates Ironic prefers: by the physical network, then groups, then ports that boot over the network.
func (s socket) rank(physical string) (rank int) {
	if physical != "" && s.has("physical_network", physical) {
		rank += 4
	}
	if s.port == nil {
		rank += 2
	}
	if s.port == nil || s.has("pxe_enabled", true) {
		rank++
	}
	return rank
}

// AttachVIF attaches a VIF to a free port or port group of the node, or to the one that the client has named. A failure after the port was
// chosen leaves the VIF attached.
func (c *Conductor) AttachVIF(n *Node, vif string, at Place) error {
	err := c.attachVIF(n, vif, at)
	if err != nil && !c.legacy() {
		c.enterHistory(n, "ERROR", n.Str("provision_state"), "Failed to attach VIF "+vif+" to node "+n.Str("uuid")+". Error: "+err.Error())
	}
	return err
}

func (c *Conductor) attachVIF(n *Node, vif string, at Place) error {
	ports, _ := c.sockets(n)
	physical := ""
	if !c.legacy() || slices.ContainsFunc(ports, func(s socket) bool { return s.port.Fields["physical_network"] != nil }) {
		if !c.Neutron.Has(vif) {
			return api.Fault(http.StatusBadRequest, "Neutron port %s was not found", vif)
		}
		known, _ := c.Neutron.Port(vif)
		physical = known.PhysicalNetwork
	}
	free, err := c.candidates(n, vif, physical, at)
	if err != nil {
		return err
	}
	if len(free) == 0 {
		return api.Fault(http.StatusBadRequest, "Unable to attach VIF %s, not enough free physical ports.", vif)
	}
	chosen := slices.MaxFunc(free, func(a, b socket) int { return a.rank(physical) - b.rank(physical) })
	if chosen.address != "" && !c.Neutron.SetMAC(vif, chosen.address) {
		return api.Fault(http.StatusInternalServerError, "Unable to attach VIF %s because Ironic can not update Neutron port %s MAC "+
			"address to match physical MAC address %s",
			vif, vif, chosen.address)
	}
	chosen.set(n, vif)
	switch {
	case n.State() == Active:
		chosen.vif = vif
		if reason := c.plug(n, chosen); reason != "" {
			return api.Fault(http.StatusInternalServerError, "%s", reason)
		}
	case !c.legacy(): // tells Neutron the node, so that it chooses the segment
		if known, _ := c.Neutron.Port(vif); known.Host != "" {
			c.Neutron.Unbind(vif)
		}
		c.Neutron.Bind(vif, n.Str("uuid"), false)
	}
	return nil
}

// plug connects a VIF to the switch, and returns why it cannot, "" if it can. 21.4 does not look whether the switch was configured.
func (c *Conductor) plug(n *Node, s socket) string {
	if !c.Neutron.Has(s.vif) {
		return noSuchVIF(n, s.vif)
	}
	refused := s.refused() && n.Uses("network") == "neutron"
	c.Neutron.Bind(s.vif, n.Str("uuid"), refused)
	if refused && !c.legacy() {
		return "Port " + s.vif + " failed to reach status ACTIVE"
	}
	return ""
}

// noSuchVIF is the error of plugging a VIF that Neutron has deleted.
func noSuchVIF(n *Node, vif string) string {
	url := "http://neutron:9696/v2.0/ports/" + vif
	missing := "No Port found for " + vif + ": Client Error for url: " + url + ", Port " + vif + " could not be found."
	if n.Uses("network") == "flat" {
		return "Unable to set binding:host_id for neutron port " + vif + ". Error: " + missing
	}
	return "Could not add public network VIF " + vif + " to node " + n.Str("uuid") + ", possible network issue. " + missing
}

// DetachVIF detaches a VIF from the node. Neutron keeps its MAC address, so that no other VIF of the network can have it, unless Ironic
// unbinds it too.
func (c *Conductor) DetachVIF(n *Node, vif string) error {
	for _, s := range c.connected(n) {
		if s.vif == vif {
			s.set(n, "")
			if n.State() == Active || n.State() == Deleting || n.State() == Available && !c.legacy() {
				c.Neutron.Unbind(vif)
			}
			return nil
		}
	}
	return api.Fault(http.StatusBadRequest, "Unable to detach VIF %s from node %s because it is not attached to it.", vif, n.Str("uuid"))
}

// forgetVIFs detaches all VIFs of a node that is undeployed.
func (c *Conductor) forgetVIFs(n *Node) {
	for _, s := range c.connected(n) {
		s.set(n, "")
		c.Neutron.Unbind(s.vif)
	}
}

// networkDefect connects the node to the networks of its VIFs when it is deployed, and returns the last_error if that fails. The deploy
// interface fake leaves the networks alone.
func (c *Conductor) networkDefect(n *Node) string {
	if n.Uses("network") == switches.Interface {
		return c.switchDefect(n)
	}
	reason := c.plugAll(n)
	switch {
	case reason == "":
		return ""
	case n.Uses("deploy") == "direct":
		return "Deploy step deploy.switch_to_tenant_network failed: Error changing node " + n.Str("uuid") +
			" to tenant networks after deploy. NetworkError: " + reason
	}
	return "Deploy step deploy.deploy failed: " + reason + "."
}

func (c *Conductor) plugAll(n *Node) string {
	network := n.Uses("network")
	if network == "noop" || n.Uses("deploy") == "fake" {
		return ""
	}
	all := c.connected(n)
	for _, s := range all {
		if reason := c.plug(n, s); reason != "" {
			return reason
		}
	}
	switch {
	case len(all) > 0:
	case network == "neutron" && !c.hasPort(n):
		return "No ports are associated with node " + n.Str("uuid")
	case network == "neutron":
		return "No neutron ports or portgroups are associated with node " + n.Str("uuid")
	case !c.legacy():
		return "Failed to bind any flat network ports for node " + n.Str("uuid")
	}
	return ""
}

// repaired returns a config drive as Ironic 39.0 writes it: without valid network data, and with a VIF, it has Neutron's
// (reference/network-data.md#config-drives-that-ironic-replaces). The networks of this Neutron have no subnets.
func (c *Conductor) repaired(n *Node, drive any) any {
	parts, isObject := drive.(map[string]any)
	network := n.Uses("network")
	if c.MaxMinor < 115 || !isObject || len(parts) == 0 || network != "flat" && network != "neutron" ||
		validNetworkData(parts["network_data"]) {
		return drive
	}
	links := []any{}
	for i, s := range c.connected(n) {
		links = append(links, map[string]any{
			"id": fmt.Sprintf("iface%d", i), "type": "phy", "ethernet_mac_address": s.address, "mtu": 1500,
			"vif_id": s.vif,
		})
	}
	if len(links) > 0 {
		parts["network_data"] = map[string]any{"links": links, "networks": []any{}, "services": []any{}}
	}
	return parts
}

func validNetworkData(document any) bool {
	data := api.Object(document)
	links, _ := data["links"].([]any)
	networks, _ := data["networks"].([]any)
	services, _ := data["services"].([]any)
	for _, link := range links {
		if api.Object(link)["mtu"] == nil {
			return false
		}
	}
	return len(links)+len(networks)+len(services) > 0
}
