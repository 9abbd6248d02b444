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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakebmc"
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

// result is how a command ended.
type result struct {
	code completion
	data []byte
}

// strike runs a command unless a fault hits it, and logs it. It returns nil if there is no answer.
func (s *Server) strike(ctx context.Context, name string, data []byte, run func() (completion, []byte)) *result {
	path := "/ipmi/" + s.BMC.Name() + "/" + name
	hit, struck := s.Fake.Strike(Method, path)
	done, code := &result{}, -1
	switch {
	case struck && hit.Delay > 0:
		select {
		case <-time.After(hit.Delay):
			done.code, done.data = run()
		case <-ctx.Done():
			done = nil
		}
	case struck && hit.Accept: // done is what a command without an answer of its own returns
	case struck && (hit.Status == 0 || hit.Hang):
		done = nil
	case struck:
		done.code = completion(hit.Status) //nolint:gosec // one byte
	default:
		done.code, done.data = run()
	}
	if done != nil && done.code == silent {
		done = nil
	}
	if done != nil {
		code = int(done.code)
	}
	s.Fake.Log(fakebmc.Request{Method: Method, Path: path, Status: code, Body: hex.EncodeToString(data)})
	return done
}

// random returns 16 bytes that no other purpose has, the same in each run.
func (s *Server) random(purpose string, numbers ...uint32) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %v", s.BMC.Name(), purpose, numbers))
	return sum[:16]
}
