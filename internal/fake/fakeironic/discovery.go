package fakeironic

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// A machine that boots Ironic's ramdisk posts its inventory. Discovery creates a node for a machine that Ironic does not know.

const (
	callbackMinor  = 84 // first API version that accepts posts of ramdisks
	discoveryMinor = 90 // Ironic 24.1, the first with discovery
)

// continueInspection answers POST /v1/continue_inspection. The fake ends requested inspections without a post, so a known
// machine gets 404.
func (s *Server) continueInspection(c *api.Call) (api.Reply, error) {
	switch {
	case s.maxMinor() < callbackMinor || len(c.Path) > 1:
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	case c.Method != http.MethodPost:
		return api.Reply{}, api.MethodNotAllowed("POST")
	}
	if err := c.Accept("node_uuid"); err != nil {
		return api.Reply{}, err
	}
	data, err := c.Object("data")
	if err != nil {
		return api.Reply{}, err
	}
	if err := checkPosted(data); err != nil {
		return api.Reply{}, err
	}
	if c.Minor != 1 && c.Minor < callbackMinor { // 1.1 is for ramdisks made for ironic-inspector
		return api.Reply{}, api.Fault(http.StatusNotFound, "API version 1.%d or newer is required", callbackMinor)
	}
	inventory, macs := api.Object(data["inventory"]), machine.PostedMACs(data)
	if len(macs) == 0 && api.Text(inventory["bmc_address"]) == "" && api.Text(inventory["bmc_v6address"]) == "" &&
		!c.Query.Has("node_uuid") {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "No lookup information provided")
	}
	if c.Query.Has("node_uuid") || s.conductor.AnyPort(macs) || !s.Discovery || s.maxMinor() < discoveryMinor {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
	}
	if _, found := conductor.FindDriver(s.discoveryDriver()); !found {
		return api.Reply{}, api.Fault(http.StatusInternalServerError, "An unknown exception occurred.")
	}
	n := s.enrollMachine(data, true)
	if c.Minor == 1 {
		return api.OK(http.StatusAccepted, api.Ordered{{"uuid", n.Str("uuid")}}), nil
	}
	return api.OK(http.StatusAccepted, s.ramdiskAnswer(c, n)), nil
}

func checkPosted(data map[string]any) error {
	rules := api.Schema{
		Name: "data", Members: map[string]api.Kind{"inventory": {Types: []string{"object"}}},
		Required: []string{"inventory"},
	}
	known := map[string]any{}
	if inventory, given := data["inventory"]; given {
		known["inventory"] = inventory
	}
	if err := rules.Check(known); err != nil {
		return err
	}
	inventory := api.Object(data["inventory"])
	for _, key := range []string{"bmc_address", "bmc_v6address"} {
		if err := rules.CheckKind(api.TextKind, inventory[key]); err != nil {
			return err
		}
	}
	cards, given := inventory["interfaces"]
	if !given {
		return rules.Fault("'interfaces' is a required property")
	}
	if err := rules.CheckKind(api.Kind{Types: []string{"array"}}, cards); err != nil {
		return err
	}
	list, _ := cards.([]any)
	if len(list) == 0 {
		return rules.Fault("[] should be non-empty")
	}
	for _, card := range list {
		if err := rules.CheckKind(api.Kind{Types: []string{"object"}}, card); err != nil {
			return err
		}
		mac, given := api.Object(card)["mac_address"]
		if !given {
			return rules.Fault("'mac_address' is a required property")
		}
		if err := rules.CheckKind(api.StringKind, mac); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) discoveryDriver() string {
	if s.DiscoveryDriver == "" {
		return "fake-hardware"
	}
	return s.DiscoveryDriver
}

// Discover posts data (see SampleInventory) as the ramdisk of an unknown machine does. It returns the UUID of the new node, ""
// if a port has one of the machine's MAC addresses. It does not need Server.Discovery.
func (s *Server) Discover(data map[string]any) string {
	defer s.lock()()
	if s.conductor.AnyPort(machine.PostedMACs(data)) {
		return ""
	}
	return s.enrollMachine(api.Object(api.Clone(data)), true).Str("uuid")
}

// DiscoverGhost posts data of a machine a second time, at the same time as its first post. Ironic creates a second node with
// the same inventory and without ports, and DiscoverGhost returns its UUID. Repeated posts within one StepTime do the same.
func (s *Server) DiscoverGhost(data map[string]any) string {
	defer s.lock()()
	return s.enrollMachine(api.Object(api.Clone(data)), false).Str("uuid")
}

func (s *Server) enrollMachine(data map[string]any, withPorts bool) *conductor.Node {
	more := map[string]any{"inspect_interface": "agent"}
	if s.legacy() {
		more = nil // no conductor inspects by its agent
	}
	n := s.discovered(more)
	s.conductor.Receive(n, data, withPorts)
	return n
}

// discovered stores a discovered node with the attributes more.
func (s *Server) discovered(more map[string]any) *conductor.Node {
	body := map[string]any{"uuid": api.NewUUID(), "driver": s.discoveryDriver(), "resource_class": api.OrNull(s.DefaultResourceClass)}
	maps.Copy(body, more)
	fields := s.newNodeFields(&api.Call{Minor: s.maxMinor(), Header: http.Header{}}, body)
	if err := s.conductor.SettleInterfaces(fields); err != nil {
		panic(err) // DiscoveryDriver is not a driver of the fake
	}
	return s.conductor.AddNode(fields)
}

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
	i.Server.exchange(r, i.handle).Write(w)
}

func (i *Inspector) handle(r *http.Request, _ []byte) api.Reply {
	defer i.Server.lock()()
	if refused := i.Server.authenticate(r); refused != nil {
		return refused.Reply()
	}
	c := api.NewCall(r, nil, i.Server.maxMinor(), i.Server.conductor.Now)
	answer := i.route(c, r.URL.Path)
	answer.Header.Set(inspectorMinHeader, "1.0")
	answer.Header.Set(inspectorMaxHeader, inspectorVersion)
	return answer
}

func (i *Inspector) route(c *api.Call, path string) api.Reply {
	link := func(name, path string) api.Ordered {
		return api.Ordered{{"name", name}, {"links", []any{api.Ordered{{"rel", "self"}, {"href", c.Base + path}}}}}
	}
	switch {
	case strings.Trim(path, "/") == "":
		return api.OK(http.StatusOK, api.Ordered{{"versions", []any{api.Ordered{
			{"status", "CURRENT"}, {"id", inspectorVersion}, {"links", []any{api.Ordered{{"rel", "self"}, {"href", c.Base + "/v1"}}}},
		}}}})
	case len(c.Path) == 0 && strings.Trim(path, "/") == "v1":
		return api.OK(http.StatusOK, api.Ordered{{"resources", []any{
			link("introspection", "/v1/introspection"), link("rules", "/v1/rules"), link("continue", "/v1/continue"),
		}}})
	case len(c.Path) == 3 && c.Path[0] == "introspection" && c.Path[2] == "data":
		if c.Method != http.MethodGet {
			return inspectorFault(http.StatusMethodNotAllowed, "The method is not allowed for the requested URL.")
		}
		return i.data(c.Path[1])
	}
	return inspectorFault(http.StatusNotFound, "404 Not Found: The requested URL was not found on the server. "+
		"If you entered the URL manually please check your spelling and try again.")
}

// data answers GET /v1/introspection/{node}/data, where node is a UUID or a name.
func (i *Inspector) data(ref string) api.Reply {
	n := i.Server.conductor.Find(ref)
	switch {
	case n == nil && !api.IsUUID(ref):
		return inspectorFault(http.StatusNotFound, "Node %s was not found in Ironic", ref)
	case i.StoresNothing:
		return inspectorFault(http.StatusNotFound, inspectorNoStoreFault)
	case n == nil || n.Introspection == nil:
		if n != nil {
			ref = n.Str("uuid")
		}
		return inspectorFault(http.StatusNotFound, "Introspection data not found for node %s, processed=True", ref)
	}
	return api.OK(http.StatusOK, n.Introspection)
}

// inspectorFault returns an error in ironic-inspector's format.
func inspectorFault(status int, format string, args ...any) api.Reply {
	return api.OK(status, api.Ordered{{"error", api.Ordered{{"message", fmt.Sprintf(format, args...)}}}})
}

// DiscoverByInspector posts data (see SampleInventory) to ironic-inspector as the ramdisk of an unknown machine does. It
// returns the UUID of the new node, "" if ironic-inspector refuses: the ramdisk reports an error, no card can become a port, or
// a node has one of the MAC addresses or the BMC address. Ironic has no inventory of the node; the Inspector serves the data.
func (s *Server) DiscoverByInspector(data map[string]any) string {
	defer s.lock()()
	data = api.Object(api.Clone(data))
	inventory := api.Object(data["inventory"])
	all, valid := inspectorCards(data)
	bmc := bmcAddress(inventory)
	if api.Text(data["error"]) != "" || len(valid) == 0 || s.conductor.AnyPort(machine.PostedMACs(data)) || bmc != "" && s.hasBMC(bmc) {
		return ""
	}
	introspected(data, all, valid)
	properties := map[string]any{}
	for _, key := range []string{"cpus", "cpu_arch", "memory_mb", "local_gb"} {
		properties[key] = api.PyText(data[key])
	}
	info := map[string]any{}
	if bmc != "" {
		info["ipmi_address"] = bmc
	}
	n := s.discovered(map[string]any{"driver_info": info, "properties": properties})
	for _, name := range valid {
		card := api.Object(all[name])
		s.conductor.AddPort(n, api.NewUUID(), api.Text(card["mac"]), map[string]any{"pxe_enabled": card["pxe"]})
	}
	if n.Str("power_interface") == "fake" {
		n.Put("power_state", conductor.PowerOff)
	}
	n.Put("updated_at", api.Timestamp(s.conductor.Now))
	n.Introspection = data
	return n.Str("uuid")
}

// bmcAddress returns the address of the BMC in an inventory: IPv4 if there is one, else IPv6, else "".
func bmcAddress(inventory map[string]any) string {
	if address := api.Text(inventory["bmc_address"]); address != "" && address != "0.0.0.0" {
		return address
	}
	if address := api.Text(inventory["bmc_v6address"]); address != "::/0" {
		return address
	}
	return ""
}

// hasBMC reports whether a node has the BMC address.
func (s *Server) hasBMC(address string) bool {
	for _, n := range s.conductor.Nodes {
		if api.Text(api.Object(n.Fields["driver_info"])["ipmi_address"]) == address {
			return true
		}
	}
	return false
}

// inspectorCards reads the network cards as ironic-inspector does. The card in boot_interface is valid or, without
// boot_interface, every card with an IP address. valid has the names, in the order of the inventory.
func inspectorCards(data map[string]any) (all map[string]any, valid []string) {
	all = map[string]any{}
	pxe := machine.BootMAC(api.Text(data["boot_interface"]))
	list, _ := api.Object(data["inventory"])["interfaces"].([]any)
	for _, item := range list {
		posted := api.Object(item)
		name := api.Text(posted["name"])
		mac, err := api.ReadMAC(posted["mac_address"])
		if name == "" || err != nil {
			continue
		}
		ip := api.Text(posted["ipv4_address"])
		if ip == "" {
			ip, _, _ = strings.Cut(api.Text(posted["ipv6_address"]), "%")
		}
		all[name] = map[string]any{"ip": api.OrNull(ip), "mac": mac, "client_id": posted["client_id"], "pxe": mac == pxe}
		if name != "lo" && !machine.IsLoopback(ip) && (mac == pxe || pxe == "" && ip != "") {
			valid = append(valid, name)
		}
	}
	return all, valid
}

// introspected adds the results of ironic-inspector to the data.
func introspected(data, all map[string]any, valid []string) {
	inventory := api.Object(data["inventory"])
	interfaces, macs := map[string]any{}, []any{}
	for _, name := range valid {
		interfaces[name] = all[name]
		macs = append(macs, api.Object(all[name])["mac"])
	}
	data["all_interfaces"], data["interfaces"], data["macs"] = all, interfaces, macs
	data["ipmi_address"], data["ipmi_v6address"] = inventory["bmc_address"], inventory["bmc_v6address"]
	if data["ipmi_v6address"] == "::/0" {
		data["ipmi_v6address"] = nil
	}
	data["cpus"], data["cpu_arch"] = api.Object(inventory["cpu"])["count"], api.Object(inventory["cpu"])["architecture"]
	data["memory_mb"] = api.Object(inventory["memory"])["physical_mb"]
	data["local_gb"] = 0.0
	if size, known := api.Number(api.Object(data["root_disk"])["size"]); known {
		data["local_gb"] = float64(int64(size)>>30 - 1) // ironic-inspector leaves one GiB for partitions
	}
	data["auto_discovered"] = true
	delete(data, "logs")
}
