package ipmi

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

// exchange sends a packet to a BMC and returns its answer; nil if there is none.
type exchange func([]byte) []byte

// client is the other side: a remote console.
type client struct {
	t        *testing.T
	exchange exchange
	username string
	suite    suite
	role     byte
	kg       []byte

	number   uint32 // of the session at the BMC
	sequence uint32
	keys     keys
}

const remoteNumber = 0xa0a1a2a3

// start adds the machine m1, with the user admin and the password secret, to a new fake, and returns a client of its IPMI face.
func start(t *testing.T, config fakebmc.Config) (*Server, *client) {
	t.Helper()
	config.Name, config.Password = "m1", "secret"
	fake := &fakebmc.Server{}
	s := &Server{Fake: fake, BMC: fake.Add(config)}
	return s, &client{
		t: t, username: "admin", suite: suites[1], role: byte(administrator),
		exchange: func(b []byte) []byte { return s.Answer(t.Context(), b) },
	}
}

// setUp sends a message of the establishment of a session, and returns the status and the rest of the answer; nil if there is none.
func (c *client) setUp(kind byte, content []byte) (status completion, rest []byte) {
	c.t.Helper()
	answer := c.exchange(packet{format: authRMCP, payload: kind, content: content}.encode(nil))
	if answer == nil {
		return silent, nil
	}
	p, err := parsePacket(answer[rmcpLength:])
	if err != nil || p.payload != kind+1 || p.content[0] != content[0] {
		c.t.Fatalf("the answer is %x", answer)
	}
	return completion(p.content[1]), p.content[4:]
}

// login opens a session. It returns the status of the message that failed.
func (c *client) login(password string) completion {
	c.t.Helper()
	remote := binary.LittleEndian.AppendUint32(nil, remoteNumber)
	status, rest := c.setUp(payloadOpenRequest, slices.Concat([]byte{1, 0, 0, 0}, remote, c.suite.payloads()))
	if status != statusOK {
		return status
	}
	number := rest[4:8]
	theirs := bytes.Repeat([]byte{7}, 16)
	identity := append([]byte{c.role, byte(len(c.username))}, c.username...)
	status, rest = c.setUp(payloadRAKP1, slices.Concat([]byte{2, 0, 0, 0}, number, theirs, []byte{c.role, 0, 0, byte(len(c.username))},
		[]byte(c.username)))
	if status != statusOK {
		return status
	}
	ours, guid := rest[4:20], rest[20:36]
	mac := func(key []byte, parts ...[]byte) []byte { return c.suite.mac(key, parts...) }
	right := bytes.Equal(rest[36:], mac([]byte("secret"), remote, number, theirs, ours, guid, identity))
	if password == "secret" && !right {
		c.t.Fatalf("RAKP 2 proves nothing: %x", rest)
	}
	status, rest = c.setUp(payloadRAKP3, slices.Concat([]byte{3, 0, 0, 0}, number, mac([]byte(password), ours, remote, identity)))
	if status != statusOK {
		return status
	}
	key := []byte(password)
	if c.kg != nil {
		key = c.kg
	}
	sik := mac(key, theirs, ours, identity)
	if !bytes.Equal(rest[4:], mac(sik, theirs, number, guid)[:c.suite.codeLength]) {
		return statusInvalidCode
	}
	c.number, c.keys, c.sequence = binary.LittleEndian.Uint32(number), c.suite.derive(sik), 0
	return statusOK
}

// raw sends a command and returns its completion code and its data. Without an answer the code is silent.
func (c *client) raw(function, command byte, data ...byte) (completion, []byte) {
	c.t.Helper()
	answer := c.exchange(c.packet(function, command, data...))
	if answer == nil {
		return silent, nil
	}
	p, err := parsePacket(answer[rmcpLength:])
	if err == nil && c.number != 0 {
		if p.session != remoteNumber || !c.keys.verify(p.signed, p.code) {
			c.t.Fatalf("the answer is not signed: %x", answer)
		}
		p.content, err = c.keys.decrypt(p.content)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := parseMessage(p.content)
	if err != nil || m.function != function+1 || m.command != command || m.sequence != byte(c.sequence&0x3f) {
		c.t.Fatalf("the answer is %+v: %v", m, err)
	}
	return completion(m.data[0]), m.data[1:]
}

// packet makes the packet of a command: of the session if there is one.
func (c *client) packet(function, command byte, data ...byte) []byte {
	c.sequence++
	m := message{to: 0x20, function: function, from: 0x81, sequence: byte(c.sequence & 0x3f), command: command, data: data}.encode()
	if c.number == 0 {
		return packet{format: authNone, content: m}.encode(nil)
	}
	return packet{
		format: authRMCP, encrypted: true, authenticated: true, session: c.number, sequence: c.sequence,
		content: c.keys.encrypt(bytes.Repeat([]byte{9}, 16), m),
	}.encode(c.keys.sign)
}

// want fails the test unless a command ends with a code. It returns the data of the answer.
func (c *client) want(code completion, function, command byte, data ...byte) []byte {
	c.t.Helper()
	got, answer := c.raw(function, command, data...)
	if got != code {
		c.t.Fatalf("raw %#x %#x %x: %#x %x, want %#x", function, command, data, got, answer, code)
	}
	return answer
}

// admin opens a session as an administrator.
func (c *client) admin() {
	c.t.Helper()
	if status := c.login("secret"); status != statusOK {
		c.t.Fatalf("login: %#x", status)
	}
	c.want(ok, application, 0x3b, byte(administrator))
}
