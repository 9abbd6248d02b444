package ipmi

import (
	"context"
	"fmt"
)

// completion is a completion code of IPMI.
type completion byte

const (
	ok                    completion = 0
	notAvailable          completion = 0x80 // the meaning of these two depends on the command
	exceeds               completion = 0x81
	invalidCommand        completion = 0xc1
	invalidLength         completion = 0xc7
	invalidField          completion = 0xcc
	insufficientPrivilege completion = 0xd4
	wrongState            completion = 0xd5
	unspecified           completion = 0xff

	silent completion = 0xfe // no answer: of no command
)

// Network functions.
const (
	chassis     = 0x00
	application = 0x06
	storage     = 0x0a
	transport   = 0x0c
)

// request is a command that a client sent.
type request struct {
	*Server
	session *session // nil outside a session
	data    []byte
}

// command is an IPMI command that the BMC knows: the privilege and the data that it needs, and the function that executes it.
type command struct {
	name   string
	level  privilege // at least
	length int       // of the data, at least
	run    func(*request) (completion, []byte)
}

// commands are all commands by network function and number.
var commands = map[[2]byte]command{
	{application, 0x01}: {"Get Device ID", user, 0, getDeviceID},
	{application, 0x02}: {"Cold Reset", administrator, 0, restart},
	{application, 0x03}: {"Warm Reset", administrator, 0, restart},
	{application, 0x37}: {"Get System GUID", none, 0, func(r *request) (completion, []byte) { return ok, r.guid() }},
	{application, 0x38}: {"Get Channel Authentication Capabilities", none, 2, getCapabilities},
	{application, 0x3b}: {"Set Session Privilege Level", user, 1, setPrivilege},
	{application, 0x3c}: {"Close Session", user, 4, closeSession},
	{application, 0x54}: {"Get Channel Cipher Suites", none, 3, getSuites},
	{application, 0x41}: {"Get Channel Access", user, 2, getChannelAccess},
	{application, 0x42}: {"Get Channel Info", user, 1, getChannel},
	{application, 0x44}: {"Get User Access", operator, 2, getUserAccess},
	{application, 0x46}: {"Get User Name", operator, 1, getUserName},
	{storage, 0x10}:     {"Get FRU Inventory Area Info", user, 1, getInventorySize},
	{storage, 0x11}:     {"Read FRU Data", user, 4, readInventory},
	{storage, 0x20}:     {"Get SDR Repository Info", user, 0, getRepository},
	{storage, 0x22}:     {"Reserve SDR Repository", user, 0, func(*request) (completion, []byte) { return ok, []byte{1, 0} }},
	{storage, 0x23}:     {"Get SDR", user, 6, getRecord},
	{storage, 0x40}:     {"Get SEL Info", user, 0, noEvents},
	{storage, 0x48}:     {"Get SEL Time", user, 0, getTime},
	{transport, 0x02}:   {"Get LAN Configuration Parameters", operator, 4, getNetwork},
	{chassis, 0x00}: {"Get Chassis Capabilities", user, 0, func(*request) (completion, []byte) {
		return ok, []byte{0, 0x20, 0x20, 0x20, 0x20}
	}},
	{chassis, 0x01}: {"Get Chassis Status", user, 0, getChassisStatus},
	{chassis, 0x02}: {"Chassis Control", operator, 1, controlChassis},
	{chassis, 0x08}: {"Set System Boot Options", operator, 1, setBootOptions},
	{chassis, 0x09}: {"Get System Boot Options", operator, 3, getBootOptions},
}

// command answers a request in a session, or before one if one is nil.
func (s *Server) command(ctx context.Context, p packet, one *session) []byte {
	m, err := parseMessage(p.content)
	if err != nil || m.function&1 != 0 {
		return nil
	}
	known, found := commands[[2]byte{m.function, m.command}]
	if !found {
		known = command{name: fmt.Sprintf("0x%02x 0x%02x", m.function, m.command), level: user, run: func(*request) (completion, []byte) {
			return invalidCommand, nil
		}}
	}
	done := s.strike(ctx, known.name, m.data, func() (completion, []byte) {
		switch {
		case s.level(one) < known.level:
			return insufficientPrivilege, nil
		case len(m.data) < known.length:
			return invalidLength, nil
		}
		return known.run(&request{Server: s, session: one, data: m.data})
	})
	if done == nil {
		return nil
	}
	return s.wrap(p, one, m.answer(done.code, done.data).encode())
}

func (s *Server) level(one *session) privilege {
	if one == nil {
		return none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.level
}

func getDeviceID(*request) (completion, []byte) {
	const (
		version  = 0x02 // of IPMI: 2.0
		support  = 0x8e // the BMC is a chassis device and has an SDR repository, a SEL and a FRU inventory
		firmware = 1
	)
	manufacturer, product := []byte{0, 0, 0}, []byte{0, 0} // 0: not specified
	return ok, append([]byte{0x20, 0x01, firmware, 0x00, version, support, manufacturer[0], manufacturer[1], manufacturer[2]}, product...)
}

// noEvents says of the log of events: version, no records, free space, times, and what it supports.
func noEvents(*request) (completion, []byte) {
	return ok, []byte{0x51, 0, 0, 0xff, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0}
}

func restart(r *request) (completion, []byte) {
	r.BMC.Restart()
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.sessions)
	return ok, nil
}

// getCapabilities says that there is IPMI 2.0 alone, and users with names.
func getCapabilities(r *request) (completion, []byte) {
	const extended, names, hasKey, version2 = 0x80, 0x04, 0x20, 0x02
	status := byte(names)
	if len(r.Kg) > 0 {
		status |= hasKey
	}
	return ok, []byte{channel, extended, status, version2, 0, 0, 0, 0}
}

// channel is the number of the network's channel.
const channel = 1

// getSuites answers with a part of 16 bytes of the list of cipher suites.
func getSuites(r *request) (completion, []byte) {
	const length = 16
	var all []byte
	for _, one := range suites {
		if r.has(one) {
			all = append(all, one.record()...)
		}
	}
	start := min(len(all), int(r.data[2]&0x3f)*length)
	return ok, append([]byte{channel}, all[start:min(len(all), start+length)]...)
}

// setPrivilege changes the level of the session, up to what it was opened for.
func setPrivilege(r *request) (completion, []byte) {
	level := privilege(r.data[0] & 0x0f)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case level > administrator:
		return notAvailable, nil
	case level > r.session.highest:
		return exceeds, nil
	case level >= user:
		r.session.level = level
	case level != none: // which asks for the present level
		return invalidField, nil
	}
	return ok, []byte{byte(r.session.level)}
}

func closeSession(r *request) (completion, []byte) {
	const invalidID completion = 0x87
	r.mu.Lock()
	defer r.mu.Unlock()
	id := uint32(r.data[0]) | uint32(r.data[1])<<8 | uint32(r.data[2])<<16 | uint32(r.data[3])<<24
	if r.sessions[id] == nil {
		return invalidID, nil
	}
	delete(r.sessions, id)
	return ok, nil
}
