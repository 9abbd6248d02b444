// Package ipmi is another face of a fakebmc.BMC: IPMI 2.0 over the network (RMCP+), with one user, who is an administrator. The power,
// what the machine boots, and the history are those of the BMC. It follows Intel's specification (second generation, version 2.0)
// and knows nothing about its clients.
//
// The Server of the BMC logs each command, and its faults hit them: the method is IPMI, the path /ipmi/MACHINE/COMMAND with the name
// that the specification has, such as /ipmi/m1/Chassis Control, and the body the data in hexadecimal digits. Open Session, RAKP 1,
// RAKP 3 and Presence Ping count as commands. Fault.Status is the completion code, or the status code of RMCP+, and zero means no
// answer.
package ipmi

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
)

// Method is the method of IPMI's commands in the log of requests and in faults.
const Method = "IPMI"

// Server answers the packets of one BMC. Callers must not change the fields while it does. It is safe for concurrent use.
type Server struct {
	Fake *fakebmc.Server
	BMC  *fakebmc.BMC

	Suites []byte // cipher suites, of 3 and 17; empty means both
	Kg     []byte // key of the BMC; empty means that there is none

	mu       sync.Mutex
	sessions map[uint32]*session
	sequence uint32          // of sessions
	options  map[byte][]byte // boot options by parameter, but for the flags, which are the BMC's override
}

// Serve answers packets until ctx ends, and closes conn. It then returns nil.
func (s *Server) Serve(ctx context.Context, conn net.PacketConn) error {
	var late sync.WaitGroup
	defer late.Wait()
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	buffer := make([]byte, 1<<16)
	for {
		n, client, err := conn.ReadFrom(buffer)
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		packet := slices.Clone(buffer[:n])
		late.Go(func() { s.reply(ctx, conn, client, packet) })
	}
}

// reply answers one packet.
func (s *Server) reply(ctx context.Context, conn net.PacketConn, client net.Addr, packet []byte) {
	if answer := s.Answer(ctx, packet); answer != nil {
		_, _ = conn.WriteTo(answer, client) // a lost packet
	}
}

// Answer returns the answer to a packet; nil if there is none.
func (s *Server) Answer(ctx context.Context, b []byte) []byte {
	if len(b) < rmcpLength || b[0] != rmcpVersion || s.BMC.Restarting() {
		return nil
	}
	switch b[3] {
	case classASF:
		return s.ping(ctx, b[rmcpLength:])
	case classIPMI:
		p, err := parsePacket(b[rmcpLength:])
		if err != nil {
			return nil
		}
		if p.session == 0 {
			return s.before(ctx, p)
		}
		return s.within(ctx, p)
	}
	return nil
}

// before answers a message outside a session.
func (s *Server) before(ctx context.Context, p packet) []byte {
	if p.format == authNone || p.payload == payloadIPMI {
		return s.command(ctx, p, nil)
	}
	step, found := setups[p.payload]
	if !found || p.format != authRMCP || p.encrypted || p.authenticated || len(p.content) < step.length {
		return nil
	}
	if p.payload == payloadRAKP3 {
		s.heard(p.content) // a client whose packet is lost has not given up
	}
	done := s.strike(ctx, step.name, p.content, func() (completion, []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.expire()
		return step.run(s, p.content)
	})
	if done == nil {
		return nil
	}
	content := []byte{p.content[0], byte(done.code), byte(step.level), 0}
	return packet{format: authRMCP, payload: step.answer, content: append(content, done.data...)}.encode(nil)
}

// within answers a message of a session. Messages that are not signed, not encrypted, or repeated get no answer.
func (s *Server) within(ctx context.Context, p packet) []byte {
	s.mu.Lock()
	s.expire()
	one := s.sessions[p.session]
	if one == nil || !one.active || p.format != authRMCP || !p.encrypted || !p.authenticated || p.payload != payloadIPMI ||
		p.sequence <= one.in || !one.keys.verify(p.signed, p.code) {
		s.mu.Unlock()
		return nil
	}
	one.in, one.last = p.sequence, time.Now()
	s.mu.Unlock()
	var err error
	if p.content, err = one.keys.decrypt(p.content); err != nil {
		return nil
	}
	return s.command(ctx, p, one)
}

// Sessions returns the number of open sessions.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return len(s.sessions)
}

func (s *Server) ping(ctx context.Context, b []byte) []byte {
	answer := pong(b)
	if answer == nil || s.strike(ctx, "Presence Ping", b, func() (completion, []byte) { return ok, nil }) == nil {
		return nil
	}
	return answer
}
