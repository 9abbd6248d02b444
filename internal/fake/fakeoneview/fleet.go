package fakeoneview

import (
	"fmt"
)

// Fleet is a group of servers of one kind and a template for them.
type Fleet struct {
	TypeURI     string
	GroupURI    string // enclosure group; empty for rack servers
	TemplateURI string
	Hardware    []string // URIs
}

// AddBlades adds n free blades that are off, with two physical ports each and sixteen in an enclosure, and a template for them.
func (s *Server) AddBlades(n int) Fleet {
	defer s.lock()()
	f := Fleet{
		TypeURI:  s.addNamed(&s.types, pathTypes, "BL460c Gen9 1"),
		GroupURI: s.addNamed(&s.groups, pathGroups, "Enclosure Group 1"),
	}
	f.TemplateURI = s.addTemplate(Template{TypeURI: f.TypeURI, GroupURI: f.GroupURI}).uri
	for range n {
		number := len(s.hardware)
		enclosure, bay := number/16+1, number%16+1
		mac := func(port int) string {
			return fmt.Sprintf("94:18:82:%02X:%02X:%02X", number>>8&0xff, number&0xff, port)
		}
		f.Hardware = append(f.Hardware, s.addHardware(Hardware{
			Name: fmt.Sprintf("Encl%d, bay %d", enclosure, bay), TypeURI: f.TypeURI, GroupURI: f.GroupURI, Bay: bay,
			EnclosureURI: fmt.Sprintf("/rest/enclosures/09SGH102X6J%d", enclosure), MACs: []string{mac(0), mac(8)},
		}).URI)
	}
	return f
}

// AddRackServers adds n free rack servers that are off and a template for them. They have no enclosure and show no ports.
func (s *Server) AddRackServers(n int) Fleet {
	defer s.lock()()
	f := Fleet{TypeURI: s.addNamed(&s.types, pathTypes, "DL380 Gen9 1")}
	f.TemplateURI = s.addTemplate(Template{TypeURI: f.TypeURI}).uri
	for range n {
		f.Hardware = append(f.Hardware, s.addHardware(Hardware{TypeURI: f.TypeURI, Model: "ProLiant DL380 Gen9"}).URI)
	}
	return f
}
