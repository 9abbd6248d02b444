package acctest

import (
	"net"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Port is a TCP port of 127.0.0.1 on which something listens or not. It stands for the service of a machine. No other test gets the port
// while nothing listens on it.
type Port struct {
	t        testing.TB
	Address  string // HOST:PORT
	listener net.Listener
}

// NewPort returns a port on which nothing listens.
func NewPort(t testing.TB) *Port {
	t.Helper()
	p := &Port{t: t, Address: reserve(t)}
	t.Cleanup(p.Close)
	return p
}

// Open listens on the port until Close, or until the test ends. It accepts connections and says nothing.
func (p *Port) Open() {
	p.t.Helper()
	listener, err := (&net.ListenConfig{Control: share}).Listen(p.t.Context(), "tcp", p.Address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.listener = listener
}

// Close makes the port refuse connections.
func (p *Port) Close() {
	if p.listener != nil {
		_ = p.listener.Close()
	}
}

// reserve takes a free port with a socket that does not listen, and returns its address.
func reserve(t testing.TB) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(socket) })
	unix.CloseOnExec(socket)
	if err = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err = unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port)) //nolint:forcetypeassert // as it was bound
}

// share lets a listener use the port of a socket that does not listen.
func share(_, _ string, c syscall.RawConn) (err error) {
	controlled := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	if controlled != nil {
		return controlled
	}
	return err
}
