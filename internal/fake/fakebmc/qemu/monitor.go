package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// monitor speaks QMP, QEMU's protocol for controlling a machine, with one process.
type monitor struct {
	conn net.Conn

	mu        sync.Mutex // one command at a time
	answers   chan answer
	ended     chan struct{}
	restarted bool // the guest asked for a restart; read it after ended
}

// answer is a message of QEMU: the greeting, the answer to a command, or an event.
type answer struct {
	QMP    json.RawMessage
	Return json.RawMessage
	Error  *struct{ Desc string }
	Event  string
	Data   struct{ Reason string }
}

// newMonitor returns a monitor and the end of its connection that QEMU gets.
func newMonitor() (*monitor, *os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "monitor"), os.NewFile(uintptr(pair[1]), "monitor")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return &monitor{conn: conn, answers: make(chan answer, 1), ended: make(chan struct{})}, theirs, nil
}

// read passes answers on and notes events until the process ends. The protocol begins with a greeting, which must be answered.
func (m *monitor) read() {
	defer close(m.ended)
	defer m.close()
	decoder := json.NewDecoder(m.conn)
	for {
		var a answer
		if err := decoder.Decode(&a); err != nil {
			return // the process has ended
		}
		switch {
		case a.QMP != nil:
			go func() { _ = m.execute("qmp_capabilities", nil) }() // if it fails, the next command does
		case a.Event == "SHUTDOWN":
			m.restarted = a.Data.Reason == "guest-reset"
		case a.Event == "":
			m.answers <- a
		}
	}
}

// wait waits for the end of the process and reports whether the guest asked for a restart.
func (m *monitor) wait() bool {
	<-m.ended
	return m.restarted
}

func (m *monitor) close() { _ = m.conn.Close() }

// commandTime is the time-out of a command.
const commandTime = 30 * time.Second

// execute sends a command and waits for its answer. The error is io.ErrClosedPipe if the process ended.
func (m *monitor) execute(command string, arguments map[string]any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	message := map[string]any{"execute": command}
	if arguments != nil {
		message["arguments"] = arguments
	}
	select {
	case <-m.answers: // to a command that was too slow
	default:
	}
	if err := json.NewEncoder(m.conn).Encode(message); err != nil {
		return errors.Join(io.ErrClosedPipe, err)
	}
	select {
	case a := <-m.answers:
		if a.Error != nil {
			return fmt.Errorf("QEMU: %s: %s", command, a.Error.Desc)
		}
		return nil
	case <-m.ended:
		return io.ErrClosedPipe
	case <-time.After(commandTime):
		return fmt.Errorf("QEMU: %s: no answer in %s", command, commandTime)
	}
}
