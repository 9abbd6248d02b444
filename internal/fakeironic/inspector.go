package fakeironic

import (
	"fmt"
	"net/http"
	"strings"
)

// Inspector is the ironic-inspector of a Server: the service that discovered machines before Ironic 24.1 and stores the data
// that their ramdisks posted. It shares the Server's credentials, Reject and log of requests. It only serves data;
// DiscoverByInspector creates nodes.
type Inspector struct {
	Server *Server

	// StoresNothing is [processing]store_data = none, the default of ironic-inspector.
	StoresNothing bool
}

const (
	inspectorVersion      = "1.18"
	inspectorMinHeader    = "X-OpenStack-Ironic-Inspector-API-Minimum-Version"
	inspectorMaxHeader    = "X-OpenStack-Ironic-Inspector-API-Maximum-Version"
	inspectorNoStoreFault = "Inspector is not configured to store data. Set the [processing]store_data configuration option to change this."
)

// ServeHTTP answers one request.
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.Server.exchange(r, i.handle).write(w)
}

func (i *Inspector) handle(r *http.Request, _ []byte) reply {
	defer i.Server.lock()()
	if refused := i.Server.authenticate(r); refused != nil {
		return refused.reply()
	}
	c := newCall(r, nil, i.Server.maxMinor(), i.Server.now)
	answer := i.route(c, r.URL.Path)
	answer.header.Set(inspectorMinHeader, "1.0")
	answer.header.Set(inspectorMaxHeader, inspectorVersion)
	return answer
}

func (i *Inspector) route(c *call, path string) reply {
	link := func(name, path string) ordered {
		return ordered{{"name", name}, {"links", []any{ordered{{"rel", "self"}, {"href", c.base + path}}}}}
	}
	switch {
	case strings.Trim(path, "/") == "":
		return ok(http.StatusOK, ordered{{"versions", []any{ordered{
			{"status", "CURRENT"}, {"id", inspectorVersion}, {"links", []any{ordered{{"rel", "self"}, {"href", c.base + "/v1"}}}},
		}}}})
	case len(c.path) == 0 && strings.Trim(path, "/") == "v1":
		return ok(http.StatusOK, ordered{{"resources", []any{
			link("introspection", "/v1/introspection"), link("rules", "/v1/rules"), link("continue", "/v1/continue"),
		}}})
	case len(c.path) == 3 && c.path[0] == "introspection" && c.path[2] == "data":
		if c.method != http.MethodGet {
			return inspectorFault(http.StatusMethodNotAllowed, "The method is not allowed for the requested URL.")
		}
		return i.data(c.path[1])
	}
	return inspectorFault(http.StatusNotFound, "404 Not Found: The requested URL was not found on the server. "+
		"If you entered the URL manually please check your spelling and try again.")
}

// data answers GET /v1/introspection/{node}/data, where node is a UUID or a name.
func (i *Inspector) data(ref string) reply {
	n := i.Server.find(ref)
	switch {
	case n == nil && !isUUID(ref):
		return inspectorFault(http.StatusNotFound, "Node %s was not found in Ironic", ref)
	case i.StoresNothing:
		return inspectorFault(http.StatusNotFound, inspectorNoStoreFault)
	case n == nil || n.introspection == nil:
		if n != nil {
			ref = n.str("uuid")
		}
		return inspectorFault(http.StatusNotFound, "Introspection data not found for node %s, processed=True", ref)
	}
	return ok(http.StatusOK, n.introspection)
}

// inspectorFault returns an error in ironic-inspector's format.
func inspectorFault(status int, format string, args ...any) reply {
	return ok(status, ordered{{"error", ordered{{"message", fmt.Sprintf(format, args...)}}}})
}

// DiscoverByInspector posts data (see SampleInventory) to ironic-inspector as the ramdisk of an unknown machine does. It
// returns the UUID of the new node, "" if ironic-inspector refuses: the ramdisk reports an error, no card can become a port, or
// a node has one of the MAC addresses or the BMC address. Ironic has no inventory of the node; the Inspector serves the data.
func (s *Server) DiscoverByInspector(data map[string]any) string {
	defer s.lock()()
	data = object(clone(data))
	inventory := object(data["inventory"])
	all, valid := inspectorCards(data)
	bmc := bmcAddress(inventory)
	if text(data["error"]) != "" || len(valid) == 0 || s.anyPort(postedMACs(data)) || bmc != "" && s.hasBMC(bmc) {
		return ""
	}
	introspected(data, all, valid)
	properties := map[string]any{}
	for _, key := range []string{"cpus", "cpu_arch", "memory_mb", "local_gb"} {
		properties[key] = pyText(data[key])
	}
	info := map[string]any{}
	if bmc != "" {
		info["ipmi_address"] = bmc
	}
	n := s.discovered(map[string]any{"driver_info": info, "properties": properties})
	for _, name := range valid {
		card := object(all[name])
		s.addPort(n, newUUID(), text(card["mac"]), map[string]any{"pxe_enabled": card["pxe"]})
	}
	if n.str("power_interface") == "fake" {
		n.put("power_state", powerOff)
	}
	n.put("updated_at", timestamp(s.now))
	n.introspection = data
	return n.str("uuid")
}

// bmcAddress returns the address of the BMC in an inventory: IPv4 if there is one, else IPv6, else "".
func bmcAddress(inventory map[string]any) string {
	if address := text(inventory["bmc_address"]); address != "" && address != "0.0.0.0" {
		return address
	}
	if address := text(inventory["bmc_v6address"]); address != "::/0" {
		return address
	}
	return ""
}

// hasBMC reports whether a node has the BMC address.
func (s *Server) hasBMC(address string) bool {
	for _, n := range s.nodes {
		if text(object(n.fields["driver_info"])["ipmi_address"]) == address {
			return true
		}
	}
	return false
}

// inspectorCards reads the network cards as ironic-inspector does. The card in boot_interface is valid or, without
// boot_interface, every card with an IP address. valid has the names, in the order of the inventory.
func inspectorCards(data map[string]any) (all map[string]any, valid []string) {
	all = map[string]any{}
	pxe := bootMAC(text(data["boot_interface"]))
	list, _ := object(data["inventory"])["interfaces"].([]any)
	for _, item := range list {
		posted := object(item)
		name := text(posted["name"])
		mac, err := readMAC(posted["mac_address"])
		if name == "" || err != nil {
			continue
		}
		ip := text(posted["ipv4_address"])
		if ip == "" {
			ip, _, _ = strings.Cut(text(posted["ipv6_address"]), "%")
		}
		all[name] = map[string]any{"ip": orNull(ip), "mac": mac, "client_id": posted["client_id"], "pxe": mac == pxe}
		if name != "lo" && !isLoopback(ip) && (mac == pxe || pxe == "" && ip != "") {
			valid = append(valid, name)
		}
	}
	return all, valid
}

// introspected adds the results of ironic-inspector to the data.
func introspected(data, all map[string]any, valid []string) {
	inventory := object(data["inventory"])
	interfaces, macs := map[string]any{}, []any{}
	for _, name := range valid {
		interfaces[name] = all[name]
		macs = append(macs, object(all[name])["mac"])
	}
	data["all_interfaces"], data["interfaces"], data["macs"] = all, interfaces, macs
	data["ipmi_address"], data["ipmi_v6address"] = inventory["bmc_address"], inventory["bmc_v6address"]
	if data["ipmi_v6address"] == "::/0" {
		data["ipmi_v6address"] = nil
	}
	data["cpus"], data["cpu_arch"] = object(inventory["cpu"])["count"], object(inventory["cpu"])["architecture"]
	data["memory_mb"] = object(inventory["memory"])["physical_mb"]
	data["local_gb"] = 0.0
	if size, known := object(data["root_disk"])["size"].(float64); known {
		data["local_gb"] = float64(int64(size)>>30 - 1) // ironic-inspector leaves one GiB for partitions
	}
	data["auto_discovered"] = true
	delete(data, "logs")
}
