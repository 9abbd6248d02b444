package fakeoneview

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// HardwareState is the state of server hardware.
type HardwareState string

// The states of server hardware into which the fake brings it. EditHardware can set any other.
const (
	NoProfileApplied HardwareState = "NoProfileApplied"
	ApplyingProfile  HardwareState = "ApplyingProfile"
	ProfileApplied   HardwareState = "ProfileApplied"
	RemovingProfile  HardwareState = "RemovingProfile"
	ProfileError     HardwareState = "ProfileError"
)

// Power is the power state of server hardware.
type Power string

// The power states.
const (
	On          Power = "On"
	Off         Power = "Off"
	PoweringOn  Power = "PoweringOn"
	PoweringOff Power = "PoweringOff"
	Resetting   Power = "Resetting"
)

// Status is the health of hardware or of a profile.
type Status string

// The healths.
const (
	OK       Status = "OK"
	Warning  Status = "Warning"
	Critical Status = "Critical"
)

// Hardware is one server. AddHardware sets empty fields to defaults, except GroupURI, EnclosureURI and MACs: without them it
// is a rack server.
type Hardware struct {
	URI          string
	Name         string
	SerialNumber string
	Model        string
	TypeURI      string   // server hardware type
	GroupURI     string   // enclosure group; empty on rack servers
	EnclosureURI string   // empty on rack servers
	Bay          int      // 0 on rack servers
	MACs         []string // of the physical ports in the portMap; empty on rack servers, which have no portMap
	ILOAddress   string
	State        HardwareState
	Status       Status
	Power        Power
	PowerLock    bool
	ProfileURI   string // read only: profiles are made by AddProfile, TakeHardware or a client
}

// hardware is a server and the appliance's internal data.
type hardware struct {
	Hardware
	profile  *profile   // its profile; nil if it is free
	busy     *operation // the last change of its power
	created  time.Time
	modified time.Time
	patched  map[string]any // attributes that clients have replaced
}

// AddHardware adds a server and returns its URI. It panics if the URI is in use.
func (s *Server) AddHardware(h Hardware) string {
	defer s.lock()()
	return s.addHardware(h).URI
}

func (s *Server) addHardware(h Hardware) *hardware {
	number := len(s.hardware) + 1
	fill(&h.SerialNumber, fmt.Sprintf("2M2%07d", number))
	fill(&h.URI, "/rest/"+pathHardware+"/"+hardwareUUID("727021", h.SerialNumber))
	fill(&h.Name, fmt.Sprintf("ilo-%s.example.com", strings.ToLower(h.SerialNumber)))
	fill(&h.Model, "ProLiant BL460c Gen9")
	fill(&h.TypeURI, s.addNamed(&s.types, pathTypes, "BL460c Gen9 1"))
	fill(&h.ILOAddress, fmt.Sprintf("198.18.%d.%d", number>>8&0xff, number&0xff))
	fill(&h.State, NoProfileApplied)
	fill(&h.Status, OK)
	fill(&h.Power, Off)
	if s.findHardware(h.URI) != nil {
		panic("fakeoneview: server hardware " + h.URI + " exists already")
	}
	h.ProfileURI = ""
	added := &hardware{Hardware: h, created: s.now, modified: s.now}
	s.hardware = append(s.hardware, added)
	return added
}

// hardwareUUID makes a UUID from product number and serial number. The bytes of its first three groups are swapped.
func hardwareUUID(product, serial string) string {
	raw := []byte(fmt.Sprintf("%-6.6s%-10.10s", product, serial))
	for _, swap := range [][2]int{{0, 3}, {1, 2}, {4, 5}, {6, 7}} {
		raw[swap[0]], raw[swap[1]] = raw[swap[1]], raw[swap[0]]
	}
	return fmt.Sprintf("%X-%X-%X-%X-%X", raw[0:4], raw[4:6], raw[6:8], raw[8:10], raw[10:16])
}

// Hardware returns the servers in order of creation.
func (s *Server) Hardware() []Hardware {
	defer s.lock()()
	all := []Hardware{}
	for _, h := range s.hardware {
		all = append(all, h.shown())
	}
	return all
}

// HardwareAt returns one server. It panics if there is none.
func (s *Server) HardwareAt(uri string) Hardware {
	defer s.lock()()
	return s.mustHardware(uri).shown()
}

// EditHardware changes a server as another user or an operator may. edit must not call the Server. EditHardware panics if
// there is no such server.
func (s *Server) EditHardware(uri string, edit func(*Hardware)) {
	defer s.lock()()
	h := s.mustHardware(uri)
	edit(&h.Hardware)
	s.touch(h)
}

// shown returns a copy with the URI of the profile.
func (h *hardware) shown() Hardware {
	copied := h.Hardware
	copied.MACs = append([]string(nil), h.MACs...)
	if h.profile != nil {
		copied.ProfileURI = h.profile.uri
	}
	return copied
}

func (s *Server) findHardware(uri string) *hardware {
	for _, h := range s.hardware {
		if sameURI(h.URI, uri) {
			return h
		}
	}
	return nil
}

func (s *Server) mustHardware(uri string) *hardware {
	h := s.findHardware(uri)
	if h == nil {
		panic("fakeoneview: there is no server hardware " + uri)
	}
	return h
}

// touch gives a server a new eTag.
func (s *Server) touch(h *hardware) { h.modified = later(s.now, h.modified) }

// link returns the JSON that names a server in messages.
func (h *hardware) link() string { return fmt.Sprintf(`{"name":%q, "uri":%q}`, h.Name, h.URI) }

func (s *Server) hardwareDocument(c *call, h *hardware) map[string]any {
	kind := "server-hardware-5"
	if c.version < 300 {
		kind = "server-hardware-3"
	}
	var bay any
	formFactor := "1U"
	if h.Bay > 0 {
		bay, formFactor = h.Bay, "HalfHeight"
	}
	document := map[string]any{
		"type": kind, "category": pathHardware, "uri": h.URI, "uuid": h.URI[strings.LastIndex(h.URI, "/")+1:], "name": h.Name,
		"serialNumber": h.SerialNumber, "virtualSerialNumber": nil, "virtualUuid": nil, "model": h.Model, "shortModel": h.Model,
		"formFactor": formFactor, "position": bay, "locationUri": orNull(h.EnclosureURI), "serverGroupUri": orNull(h.GroupURI),
		"serverHardwareTypeUri": h.TypeURI, "serverProfileUri": nil, "powerState": h.Power, "powerLock": h.PowerLock,
		"state": h.State, "stateReason": "NotApplicable", "status": h.Status, "refreshState": "NotRefreshing", "maintenanceMode": false,
		"uidState": "Off", "generation": "Gen9", "memoryMb": 131072, "processorCount": 2, "processorCoreCount": 16,
		"mpState": "OK", "mpModel": "iLO4",
		"romVersion": "I36 02/17/2017",
		"mpHostInfo": map[string]any{
			"mpHostName":    "ilo-" + strings.ToLower(h.SerialNumber),
			"mpIpAddresses": h.iloAddresses(),
		},
		"portMap": h.portMap(), "scopesUri": "/rest/scopes/resources" + h.URI,
		"eTag": milliseconds(h.modified), "created": timestamp(h.created), "modified": timestamp(h.modified),
	}
	maps.Copy(document, h.patched)
	if s.EmptyProfileURI {
		document["serverProfileUri"] = ""
	}
	if h.profile != nil && (!s.LateProfileURI || !h.profile.creating()) {
		document["serverProfileUri"] = h.profile.uri
	}
	return document
}

// iloAddresses returns the addresses of the iLO. One that has got none from DHCP has its link-local address only.
func (h *hardware) iloAddresses() []any {
	addresses := []any{map[string]any{"address": "fe80::9657:a5ff:fe66:1", "type": "LinkLocal"}}
	if h.ILOAddress != "" {
		addresses = append(addresses, map[string]any{"address": h.ILOAddress, "type": "DHCP"})
	}
	return addresses
}

// portMap returns the ports of a blade; null for rack servers.
func (h *hardware) portMap() any {
	if len(h.MACs) == 0 {
		return nil
	}
	ports := []any{}
	for i, mac := range h.MACs {
		ports = append(ports, map[string]any{
			"portNumber": i + 1, "type": "Ethernet", "mac": mac, "wwn": nil, "interconnectUri": nil, "interconnectPort": 0,
			"virtualPorts": []any{
				map[string]any{"portNumber": 1, "portFunction": "a", "mac": mac, "wwnn": nil, "wwpn": nil},
				map[string]any{"portNumber": 2, "portFunction": "b", "mac": "", "wwnn": nil, "wwpn": nil},
			},
		})
	}
	return map[string]any{"deviceSlots": []any{
		map[string]any{
			"location": "Flb", "slotNumber": 1, "deviceNumber": 9, "deviceName": "HP FlexFabric 10Gb 2-port 536FLB Adapter",
			"physicalPorts": ports,
		},
		map[string]any{"location": "Mezz", "slotNumber": 1, "deviceNumber": 1, "deviceName": "", "physicalPorts": []any{}},
	}}
}
