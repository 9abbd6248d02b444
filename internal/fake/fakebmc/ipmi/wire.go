package ipmi

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Classes of RMCP messages, and the RMCP header that all answers have: version 1.0, without acknowledgment.
const (
	classASF  = 6
	classIPMI = 7

	rmcpVersion = 6
	rmcpNoAck   = 0xff
	rmcpLength  = 4
)

// Formats of a session's messages.
const (
	authNone = 0 // of IPMI 1.5, which clients send before they know that there is 2.0
	authRMCP = 6 // RMCP+
)

const (
	payloadIPMI         = 0
	payloadOpenRequest  = 0x10
	payloadOpenResponse = 0x11
	payloadRAKP1        = 0x12
	payloadRAKP2        = 0x13
	payloadRAKP3        = 0x14
	payloadRAKP4        = 0x15
)

// errMalformed is the error of a packet that is not what the specification says. A BMC does not answer it.
var errMalformed = errors.New("malformed packet")

// packet is a message of a session, or one before a session, whose number is 0.
type packet struct {
	format        byte // authNone or authRMCP
	payload       byte
	encrypted     bool
	authenticated bool
	session       uint32
	sequence      uint32
	content       []byte // perhaps encrypted
	signed        []byte // what the authentication code covers
	code          []byte // the authentication code
}

// parsePacket reads what follows the RMCP header.
func parsePacket(b []byte) (packet, error) {
	if len(b) == 0 {
		return packet{}, errMalformed
	}
	p := packet{format: b[0]}
	switch {
	case p.format == authNone && len(b) >= 10:
		p.sequence, p.session = binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])
		if length := int(b[9]); length <= len(b)-10 {
			p.content = b[10 : 10+length]
			return p, nil
		}
	case p.format == authRMCP && len(b) >= 12:
		p.encrypted, p.authenticated, p.payload = b[1]&0x80 != 0, b[1]&0x40 != 0, b[1]&0x3f
		p.session, p.sequence = binary.LittleEndian.Uint32(b[2:]), binary.LittleEndian.Uint32(b[6:])
		length := int(binary.LittleEndian.Uint16(b[10:]))
		if length > len(b)-12 {
			break
		}
		p.content = b[12 : 12+length]
		if !p.authenticated {
			return p, nil
		}
		return p.parseTrailer(b, 12+length)
	}
	return packet{}, errMalformed
}

// parseTrailer reads the trailer of an authenticated message: padding to a multiple of 4, its length, the next header (always 7),
// and the authentication code.
func (p packet) parseTrailer(b []byte, end int) (packet, error) {
	padding := -(end + 2) & 3
	after := end + padding + 2
	if after > len(b) || int(b[after-2]) != padding || b[after-1] != 7 {
		return packet{}, errMalformed
	}
	p.signed, p.code = b[:after], b[after:]
	return p, nil
}

// encode writes a message with the RMCP header. sign returns the authentication code of an authenticated one.
func (p packet) encode(sign func([]byte) []byte) []byte {
	b := []byte{rmcpVersion, 0, rmcpNoAck, classIPMI, p.format}
	if p.format == authNone {
		b = binary.LittleEndian.AppendUint32(b, p.sequence)
		b = binary.LittleEndian.AppendUint32(b, p.session)
		return append(append(b, byte(len(p.content))), p.content...)
	}
	kind := p.payload
	if p.encrypted {
		kind |= 0x80
	}
	if p.authenticated {
		kind |= 0x40
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, p.session)
	b = binary.LittleEndian.AppendUint32(b, p.sequence)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(p.content))) //nolint:gosec // messages are short
	b = append(b, p.content...)
	if !p.authenticated {
		return b
	}
	padding := -(len(b) - rmcpLength + 2) & 3
	b = append(b, []byte{0xff, 0xff, 0xff}[:padding]...)
	b = append(b, byte(padding), 7)
	return append(b, sign(b[rmcpLength:])...)
}

// message is a request of IPMI or its answer.
type message struct {
	to, from       byte // addresses
	function       byte // network function; odd in answers
	toLUN, fromLUN byte
	sequence       byte
	command        byte
	data           []byte
}

// parseMessage reads a message and checks its two checksums.
func parseMessage(b []byte) (message, error) {
	if len(b) < 7 || checksum(b[:3]) != 0 || checksum(b[3:]) != 0 {
		return message{}, errMalformed
	}
	return message{
		to: b[0], function: b[1] >> 2, toLUN: b[1] & 3, from: b[3], sequence: b[4] >> 2, fromLUN: b[4] & 3, command: b[5],
		data: b[6 : len(b)-1],
	}, nil
}

// encode writes a message.
func (m message) encode() []byte {
	head := []byte{m.to, m.function<<2 | m.toLUN}
	body := append([]byte{m.from, m.sequence<<2 | m.fromLUN, m.command}, m.data...)
	return slices.Concat(head, []byte{-sum(head)}, body, []byte{-sum(body)})
}

// answer returns the answer to a request.
func (m message) answer(code completion, data []byte) message {
	return message{
		to: m.from, function: m.function | 1, toLUN: m.fromLUN, from: m.to, sequence: m.sequence, fromLUN: m.toLUN, command: m.command,
		data: append([]byte{byte(code)}, data...),
	}
}

// checksum is 0 for bytes that end with the right checksum.
func checksum(b []byte) byte { return sum(b) }

func sum(b []byte) byte {
	var total byte
	for _, one := range b {
		total += one
	}
	return total
}

// pong answers the presence ping of ASF 2.0: IPMI is supported. It returns nil if b is not one.
func pong(b []byte) []byte {
	const ping, pongType, length = 0x80, 0x40, 16
	if len(b) < 8 || binary.BigEndian.Uint32(b) != asfEnterprise || b[4] != ping {
		return nil
	}
	answer := []byte{rmcpVersion, 0, rmcpNoAck, classASF}
	answer = binary.BigEndian.AppendUint32(answer, asfEnterprise)
	answer = append(answer, pongType, b[5], 0, length)
	answer = binary.BigEndian.AppendUint32(answer, asfEnterprise)
	answer = append(answer, 0, 0, 0, 0) // nothing of an OEM
	return append(answer, 0x81, 0, 0, 0, 0, 0, 0, 0)
}

// asfEnterprise is the number of the ASF RMCP forum.
const asfEnterprise = 4542
