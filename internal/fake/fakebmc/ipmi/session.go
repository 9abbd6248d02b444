package ipmi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

const (
	sessionLimit = 32
	sessionTime  = time.Minute // without a message
	loginTime    = 3 * time.Second
)

// privilege is a level of privilege.
type privilege byte

const (
	none          privilege = 0 // before a session
	user          privilege = 2
	operator      privilege = 3
	administrator privilege = 4
)

// Status codes of RMCP+.
const (
	statusOK                completion = 0
	statusFull              completion = 0x01
	statusInvalidSession    completion = 0x02
	statusUnauthorizedLevel completion = 0x0a
	statusUnauthorizedName  completion = 0x0d
	statusInvalidCode       completion = 0x0f
	statusNoSuite           completion = 0x11
	statusIllegal           completion = 0x12
)

// session is a session, from Open Session on.
type session struct {
	id, remote   uint32
	suite        suite
	highest      privilege // what RAKP 1 asked for
	level        privilege
	password     string // with which it was opened
	user         []byte
	role         byte
	theirs, ours []byte // random numbers
	keys         keys
	active       bool
	finished     bool   // the client has sent RAKP 3
	in, out      uint32 // last sequence numbers
	last         time.Time
}

// expire ends the sessions that have had no message for a time, and those with an old password.
func (s *Server) expire() {
	_, password := s.BMC.Credentials()
	for id, one := range s.sessions {
		if time.Since(one.last) > sessionTime || one.active && one.password != password {
			delete(s.sessions, id)
		}
	}
}

// setup is a message of the establishment of a session.
type setup struct {
	name   string
	level  privilege // that the answer names
	answer byte
	length int // at least
	run    func(*Server, []byte) (completion, []byte)
}

var setups = map[byte]setup{
	payloadOpenRequest: {"Open Session", administrator, payloadOpenResponse, 32, (*Server).open},
	payloadRAKP1:       {"RAKP 1", none, payloadRAKP2, 28, (*Server).rakp1},
	payloadRAKP3:       {"RAKP 3", none, payloadRAKP4, 8, (*Server).rakp3},
}

// open answers Open Session.
func (s *Server) open(b []byte) (completion, []byte) {
	remote := b[4:8]
	chosen := -1
	for i, one := range suites {
		if s.has(one) && slices.Equal(b[8:32], one.payloads()) {
			chosen = i
		}
	}
	switch {
	case chosen < 0:
		return statusNoSuite, remote
	case len(s.sessions) >= sessionLimit:
		return statusFull, remote
	}
	if s.sessions == nil {
		s.sessions = map[uint32]*session{}
	}
	s.sequence++
	made := &session{id: s.sequence, remote: binary.LittleEndian.Uint32(remote), suite: suites[chosen], last: time.Now()}
	s.sessions[made.id] = made
	return statusOK, slices.Concat(remote, binary.LittleEndian.AppendUint32(nil, made.id), made.suite.payloads())
}

// has reports whether the BMC has a cipher suite.
func (s *Server) has(one suite) bool { return len(s.Suites) == 0 || slices.Contains(s.Suites, one.id) }

// payloads are the algorithms as Open Session names them.
func (s suite) payloads() []byte {
	return []byte{0, 0, 0, 8, s.authentication, 0, 0, 0, 1, 0, 0, 8, s.integrity, 0, 0, 0, 2, 0, 0, 8, s.confidentiality, 0, 0, 0}
}

// rakp1 answers RAKP message 1: it proves that the BMC knows the password of the user.
func (s *Server) rakp1(b []byte) (completion, []byte) {
	one := s.sessions[binary.LittleEndian.Uint32(b[4:])]
	if one == nil {
		return statusInvalidSession, make([]byte, 4)
	}
	one.last = time.Now()
	remote := binary.LittleEndian.AppendUint32(nil, one.remote)
	username, password := s.BMC.Credentials()
	name := b[28:]
	if int(b[27]) != len(name) {
		return statusIllegal, remote
	}
	if string(name) != username {
		s.BMC.Note(fakebmc.LoginRefused, string(name))
		return statusUnauthorizedName, remote
	}
	level := privilege(b[24] & 0x0f)
	if level == none {
		level = administrator
	}
	if level > administrator {
		return statusUnauthorizedLevel, remote
	}
	one.highest, one.password, one.user = level, password, slices.Clone(name)
	one.role, one.theirs, one.ours = b[24], slices.Clone(b[8:24]), s.random("session", one.id)
	time.AfterFunc(loginTime, func() { s.giveUp(one) })
	guid := s.guid()
	code := one.suite.mac([]byte(password), remote, one.number(), one.theirs, one.ours, guid, one.identity())
	return statusOK, slices.Concat(remote, one.ours, guid, code)
}

// heard notes that a client has sent RAKP 3.
func (s *Server) heard(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.sessions[binary.LittleEndian.Uint32(b[4:])]; one != nil {
		one.finished = true
	}
}

// giveUp ends a login that the client has not finished: ipmitool sends nothing more when RAKP 2 tells it that the password is wrong.
func (s *Server) giveUp(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !one.finished && s.sessions[one.id] == one {
		s.refuse(one)
	}
}

// refuse ends a login with a wrong password.
func (s *Server) refuse(one *session) {
	s.BMC.Note(fakebmc.LoginRefused, string(one.user))
	delete(s.sessions, one.id)
}

// rakp3 answers RAKP message 3: the client proves that it knows the password, or says why it gives up.
func (s *Server) rakp3(b []byte) (completion, []byte) {
	one := s.sessions[binary.LittleEndian.Uint32(b[4:])]
	if one == nil || one.ours == nil {
		return statusInvalidSession, make([]byte, 4)
	}
	one.last = time.Now()
	remote := binary.LittleEndian.AppendUint32(nil, one.remote)
	if b[1] != 0 {
		s.refuse(one)
		return silent, nil
	}
	password := []byte(one.password)
	if !hmac.Equal(b[8:], one.suite.mac(password, one.ours, remote, one.identity())) {
		s.refuse(one)
		return statusInvalidCode, remote
	}
	if len(s.Kg) > 0 {
		password = s.Kg
	}
	sik := one.suite.mac(password, one.theirs, one.ours, one.identity())
	one.keys, one.active, one.level = one.suite.derive(sik), true, min(user, one.highest)
	return statusOK, slices.Concat(remote, one.suite.mac(sik, one.theirs, one.number(), s.guid())[:one.suite.codeLength])
}

// identity is the part of RAKP 1 that its codes cover: the role, and the user name with its length.
func (o *session) identity() []byte { return append([]byte{o.role, byte(len(o.user))}, o.user...) }

func (o *session) number() []byte { return binary.LittleEndian.AppendUint32(nil, o.id) }

// wrap puts the answer to a message of a session, or before one, into a packet.
func (s *Server) wrap(p packet, one *session, content []byte) []byte {
	if one == nil {
		return packet{format: p.format, payload: payloadIPMI, content: content}.encode(nil)
	}
	s.mu.Lock()
	one.out++
	out := one.out
	s.mu.Unlock()
	return packet{
		format: authRMCP, payload: payloadIPMI, encrypted: true, authenticated: true, session: one.remote, sequence: out,
		content: one.keys.encrypt(s.random("vector", one.id, out), content),
	}.encode(one.keys.sign)
}

// random returns 16 bytes that no other purpose has, the same in each run.
func (s *Server) random(purpose string, numbers ...uint32) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %v", s.BMC.Name(), purpose, numbers))
	return sum[:16]
}

// guid is the UUID of the BMC.
func (s *Server) guid() []byte {
	guid, err := hex.DecodeString(strings.ReplaceAll(s.BMC.UUID(), "-", ""))
	if err != nil {
		panic(err) // it is a UUID
	}
	return guid
}
