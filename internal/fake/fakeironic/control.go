package fakeironic

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/neutron"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/seed"
)

// with calls a function with a node, if there is one.
func (s *Server) with(ref string, do func(*conductor.Node)) {
	defer s.lock()()
	if n := s.conductor.Find(ref); n != nil {
		do(n)
	}
}

// BIOSSetting is a BIOS setting of a machine.
type BIOSSetting = machine.BIOSSetting

// SetBIOS replaces the BIOS settings of a node. It does nothing if the node does not exist.
func (s *Server) SetBIOS(ref string, all ...BIOSSetting) {
	defer s.lock()()
	if n := s.conductor.Find(ref); n != nil {
		n.Machine.BIOS = map[string]machine.BIOSSetting{}
		for _, setting := range all {
			n.Machine.BIOS[setting.Name] = setting
		}
	}
}

// ResetBIOS gives the BIOS of a node the settings that it had at first, as a battery that fails does. It does nothing if the node does not
// exist.
func (s *Server) ResetBIOS(ref string) { s.with(ref, func(n *conductor.Node) { n.Machine.BIOS = nil }) }

// BIOS returns the values of the BIOS settings of a node.
func (s *Server) BIOS(ref string) map[string]string {
	defer s.lock()()
	values := map[string]string{}
	if n := s.conductor.Find(ref); n != nil {
		for name, setting := range n.BIOSSettings() {
			values[name] = setting.Value
		}
	}
	return values
}

// SetFirmware sets the version of a firmware component of a node. It does nothing if the node does not exist.
func (s *Server) SetFirmware(ref, name, version string) {
	s.with(ref, func(n *conductor.Node) { n.Components()[name] = &machine.Component{Initial: version, Current: version} })
}

// Hold keeps every node that is in one of the transient states, or enters one, in that state until release is called. With "power on"
// or "power off" it keeps the change to that power from ending, and without states it keeps everything. StepTime counts as well: a node
// leaves the state when both have ended. Clients can still abort or undeploy a node that is kept, where Ironic allows that. release may
// be called more than once.
func (s *Server) Hold(states ...string) (release func()) {
	defer s.lock()()
	letGo := s.conductor.Hold(states)
	return sync.OnceFunc(func() {
		defer s.lock()()
		letGo()
	})
}

// PowerCycles returns how often the machine of a node booted: each change of its power_state to "power on" counts 1, and each
// restart ("rebooting", "soft rebooting") of a machine that was on. A deployment or rebuild with the deploy interface ramdisk
// counts 1, one with direct counts 2 (Ironic's ramdisk, then the image), a cleaning with a ramdisk counts 1. Undeploying,
// operations with the deploy interface fake, inspection, rescue, Set, and operations that fail before the boot count 0.
// It returns 0 if the node does not exist.
func (s *Server) PowerCycles(ref string) (count int) {
	s.with(ref, func(n *conductor.Node) { count = n.Machine.Starts })
	return count
}

// RunAgent makes Ironic's agent on the machine of a node report or fall silent, as after a boot of the ramdisk by hand. Discovery
// starts it, and a restart ends it.
func (s *Server) RunAgent(ref string, runs bool) {
	s.with(ref, func(n *conductor.Node) { n.Machine.Agent = runs })
}

// BootedISO returns the URL of the ISO that the machine of a node booted last, "" if it booted something else or never.
// After a deployment or rebuild with the deploy interface ramdisk that is the boot_iso of the deployment, also after restarts
// and after later changes of boot_iso. A restart from cdrom after an attachment of virtual media boots the attached ISO.
// It returns "" if the node does not exist.
func (s *Server) BootedISO(ref string) (url string) {
	s.with(ref, func(n *conductor.Node) { url = n.Machine.Booted })
	return url
}

// Drive returns the URL of the image in a node's CD drive; "" if the drive is empty or the node does not exist.
func (s *Server) Drive(ref string) (url string) {
	s.with(ref, func(n *conductor.Node) { url = n.Machine.Drive })
	return url
}

// SwitchPort returns the VLANs that the network interface ironic-networking has given to a port of a switch, in the form of
// extra.switchport; nil if it has given it none.
func (s *Server) SwitchPort(switchID, portID string) map[string]any {
	defer s.lock()()
	return api.Object(s.conductor.SwitchPort(switchID, portID))
}

// GroupForVIFs moves ports, by MAC address, to a new port group, as Ironic does while it attaches VIFs with trait-based networking.
func (s *Server) GroupForVIFs(macs ...string) {
	defer s.lock()()
	for _, mac := range macs {
		p := s.conductor.PortByMAC[mac]
		if mac == macs[0] {
			s.portgroups = append(s.portgroups, &portgroup{
				uuid: api.NewUUID(), name: "tbn_dyn_portgroup_" + api.NewUUID()[:8],
				dynamic: true, mode: "active-backup", standalone: true, node: p.Node,
			})
		}
		p.Fields["portgroup_uuid"] = s.portgroups[len(s.portgroups)-1].uuid
	}
}

// Nodes returns copies of all nodes in order of creation.
func (s *Server) Nodes() []Node {
	defer s.lock()()
	out := make([]Node, len(s.conductor.Nodes))
	for i, n := range s.conductor.Nodes {
		out[i] = public(n)
	}
	return out
}

// Node returns a copy of the node with that UUID or name.
func (s *Server) Node(ref string) (Node, bool) {
	defer s.lock()()
	n := s.conductor.Find(ref)
	if n == nil {
		return Node{}, false
	}
	return public(n), true
}

// Set changes an attribute of a node in the database without checks. Setting provision_state ends the node's operation in
// progress. Set does nothing if the node does not exist.
func (s *Server) Set(ref, field string, value any) {
	s.with(ref, func(n *conductor.Node) { s.conductor.Set(n, field, api.Clone(value)) })
}

// Announcement returns what a switch with a chassis ID and a name sends from a port, for LLDP.
func Announcement(chassis, name, port string) []any { return machine.Announcement(chassis, name, port) }

// SetInventory stores the result of an inspection. It does nothing if the node does not exist.
func (s *Server) SetInventory(ref string, inventory, pluginData map[string]any) {
	s.with(ref, func(n *conductor.Node) {
		n.Inventory = map[string]any{"inventory": api.Clone(inventory), "plugin_data": api.Clone(pluginData)}
	})
}

// Walk returns the provision states that the node has been in, oldest first. It finds deleted nodes by their UUID.
func (s *Server) Walk(ref string) []string {
	defer s.lock()()
	if n := s.conductor.Find(ref); n != nil {
		ref = n.Str("uuid")
	}
	return s.conductor.Walk(ref)
}

// MaxBusy returns the highest number of nodes that were in transient states at the same time. If states are given, it counts
// only nodes in these states.
func (s *Server) MaxBusy(states ...string) int {
	defer s.lock()()
	return s.conductor.MaxBusy(states)
}

// AddFleet adds n available nodes of a resource class with the driver fake-hardware. Their names are node-000, node-001 and so
// on, without names in use. They are off and have properties, two ports and an inventory. Every second node has the trait
// CUSTOM_NVME.
func (s *Server) AddFleet(n int, class string) {
	defer s.lock()()
	for number := 0; n > 0; number++ {
		name := fmt.Sprintf("node-%03d", number)
		if s.conductor.NodeByName[name] != nil {
			continue
		}
		n--
		s.addMachine(name, class, number)
	}
}

func (s *Server) addMachine(name, class string, number int) {
	c := &api.Call{Minor: s.maxMinor(), Header: http.Header{}}
	fields := s.newNodeFields(c, map[string]any{
		"uuid": api.NewUUID(), "name": name, "driver": "fake-hardware", "resource_class": class,
		"properties": map[string]any{
			"cpus": 32.0, "memory_mb": 131072.0, "local_gb": 893.0, "cpu_arch": "x86_64", "capabilities": "boot_mode:uefi",
		},
	})
	if err := s.conductor.SettleInterfaces(fields); err != nil {
		panic(err) // cannot happen: fake-hardware has all defaults
	}
	fields["provision_state"] = string(conductor.Available)
	fields["provision_updated_at"] = api.Timestamp(s.conductor.Now)
	fields["power_state"] = conductor.PowerOff
	if number%2 == 1 {
		fields["traits"] = []string{"CUSTOM_NVME"}
	}
	n := s.conductor.AddNode(fields)
	for card := range 2 {
		mac := fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", number>>16&0xff, number>>8&0xff, number&0xff, card)
		s.conductor.AddPort(n, api.NewUUID(), mac, map[string]any{"pxe_enabled": card == 0})
	}
	s.conductor.Discover(n)
}

// AddSeed adds the nodes, ports and allocations of a settled seed. It adds a note to the seed for each driver and interface that the server
// does not have: the node gets fake-hardware, or the default of its driver. The UUIDs, names and MAC addresses must not be in use.
func (s *Server) AddSeed(records *seed.Seed) {
	defer s.lock()()
	for _, record := range records.Nodes {
		s.addSeeded(records, record)
	}
	for _, port := range records.Ports {
		n := s.conductor.Find(api.Text(port["node_uuid"]))
		s.conductor.AddPort(n, api.Text(port["uuid"]), api.Text(port["address"]), port)
	}
	for _, record := range records.Allocations {
		a := &conductor.Allocation{
			Uuid: api.Text(record["uuid"]), Name: api.Text(record["name"]), Owner: api.Text(record["owner"]),
			Class: api.Text(record["resource_class"]),
			State: conductor.Allocated, Node: s.conductor.Find(api.Text(record["node_uuid"])),
			Candidates: api.Texts(record["candidate_nodes"]), Traits: api.Texts(record["traits"]), Extra: api.Object(record["extra"]),
			CreatedAt: cmp.Or(api.Text(record["created_at"]), api.Timestamp(s.conductor.Now)), UpdatedAt: api.Text(record["updated_at"]),
		}
		s.conductor.Allocations = append(s.conductor.Allocations, a)
	}
}

func (s *Server) addSeeded(records *seed.Seed, record map[string]any) {
	fields := s.newNodeFields(&api.Call{Minor: s.maxMinor(), Header: http.Header{}}, record)
	who := cmp.Or(api.Text(fields["name"]), api.Text(fields["uuid"]))
	driver, known := conductor.FindDriver(api.Text(fields["driver"]))
	if !known {
		if given := api.Text(fields["driver"]); given != "" {
			records.Notes = append(records.Notes, fmt.Sprintf("node %s has the driver %s, which the fake lacks: it gets fake-hardware", who,
				given))
		}
		driver, _ = conductor.FindDriver("fake-hardware")
		fields["driver"] = driver.Name
	}
	overrides := api.Object(api.Clone(fields["instance_info"]))
	for _, kind := range api.InterfaceKinds {
		key, implementations := kind+"_interface", driver.At(s.maxMinor()).Interfaces[kind]
		if given := api.Text(overrides[key]); !s.conductor.Supports(driver, kind, given) {
			delete(overrides, key)
		}
		if given := api.Text(fields[key]); given != "" && !s.conductor.Supports(driver, kind, given) {
			if known {
				records.Notes = append(records.Notes, fmt.Sprintf("node %s has the %s %s, which the fake lacks for %s: it gets %s", who,
					key, given, driver.Name, implementations[0]))
			}
			fields[key] = nil
		}
	}
	fields["provision_state"], fields["instance_info"] = record["provision_state"], overrides
	if group := api.Text(fields["conductor_group"]); group != "" {
		if s.conductorGroups == nil {
			s.conductorGroups = map[string]bool{}
		}
		s.conductorGroups[group] = true
	}
	if err := s.conductor.SettleInterfaces(fields); err != nil {
		panic(err) // cannot happen: the driver has all interfaces that are left
	}
	s.conductor.AddNode(fields)
}

// AddVIF creates a port in a network of Neutron, which belongs to a physical network, and returns its ID. From then on Neutron knows no
// other ports; before, it has every port that a request names.
func (s *Server) AddVIF(network, physicalNetwork string) (id string) {
	defer s.lock()()
	if s.conductor.Neutron == nil {
		s.conductor.Neutron = &neutron.Neutron{}
	}
	return s.conductor.Neutron.Add(network, physicalNetwork)
}

// DeleteVIF deletes a port in Neutron that AddVIF has created. Ironic does not learn of it.
func (s *Server) DeleteVIF(id string) {
	defer s.lock()()
	s.conductor.Neutron.Delete(id)
}

// VIF returns what Neutron knows of a port.
func (s *Server) VIF(id string) (port neutron.Port, exists bool) {
	defer s.lock()()
	return s.conductor.Neutron.Port(id)
}

// Events returns how many events have run: what the conductor did by itself, and not for a request at once.
func (s *Server) Events() int {
	defer s.lock()()
	return s.conductor.Happened
}

// SampleInventory returns the data that the ramdisk of the nth machine posts. Hostname, serial number, MAC addresses and BMC
// address are unique to the machine. The caller may change the result.
func SampleInventory(n int) map[string]any { return machine.SampleInventory(n) }

// Disk is a disk of a machine.
type Disk = machine.Disk

// SampleDisk returns the facts of a disk.
func SampleDisk(name, serial string) map[string]any { return machine.SampleDisk(name, serial) }

// DisksOn returns copies of the disks of the machine of a node; none if the node does not exist.
func (s *Server) DisksOn(ref string) (disks []*Disk) {
	defer s.lock()()
	if n := s.conductor.Find(ref); n != nil {
		for _, d := range s.conductor.DisksOf(n) {
			disks = append(disks, d.Clone())
		}
	}
	return disks
}

// disksOf returns the disks of a machine at first.
func (s *Server) disksOf(n *conductor.Node) []*Disk {
	if s.Disks == nil {
		return nil
	}
	return s.Disks(public(n))
}
