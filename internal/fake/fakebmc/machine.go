package fakebmc

import (
	"sync"
	"time"
)

// Boot is what the firmware of a machine decides at a boot.
type Boot struct {
	Source     string // as BootSourceOverrideTarget: Pxe, Cd, UsbCd, Hdd, UefiHttp, ...; None means the machine's own order
	Mode       string // UEFI or Legacy
	SecureBoot bool
	Image      string // in the CD drive, whether it boots from that or not; "" if there is none
}

// Machine is the computer behind a BMC. Its methods may be called at any time and by several goroutines. They return as soon as
// the machine has begun.
type Machine interface {
	// Connect is called once and first. The machine calls post at each boot, also after it restarted without the BMC, and off
	// whenever it loses power. It calls neither while it holds a lock that its methods need.
	Connect(post func() Boot, off func())

	// On reports whether the machine has power.
	On() bool
	// Start powers a machine on that is off.
	Start() error
	// Stop cuts the power.
	Stop() error
	// Shutdown asks the operating system to shut down, which it may ignore.
	Shutdown() error
	// Reset restarts a machine that is on without asking it.
	Reset() error
	// Reboot asks the operating system to restart, which it may ignore.
	Reboot() error
	// Interrupt sends a non-maskable interrupt.
	Interrupt() error

	// Insert puts an image (a URL) into a drive: Cd or Usb. Eject takes it out.
	Insert(drive, image string) error
	Eject(drive string) error
}

// Simulated is a machine that boots nothing: it only takes its time to switch on and off. Callers must not change the fields
// while a BMC uses it.
type Simulated struct {
	StartTime       time.Duration // from the command to power
	ShutdownTime    time.Duration // of the operating system
	IgnoresShutdown bool          // the operating system ignores Shutdown and Reboot

	post func() Boot
	off  func()

	mu      sync.Mutex
	on      bool
	command int // number of the last command; a later one replaces what an earlier one has begun
}

// Connect implements Machine.
func (m *Simulated) Connect(post func() Boot, off func()) { m.post, m.off = post, off }

// On implements Machine.
func (m *Simulated) On() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// Start implements Machine.
func (m *Simulated) Start() error {
	if !m.On() {
		m.after(m.StartTime, func() { m.turn(true) })
	}
	return nil
}

// Stop implements Machine.
func (m *Simulated) Stop() error {
	m.after(0, func() { m.turn(false) })
	return nil
}

// Shutdown implements Machine.
func (m *Simulated) Shutdown() error {
	if m.On() && !m.IgnoresShutdown {
		m.after(m.ShutdownTime, func() { m.turn(false) })
	}
	return nil
}

// Reset implements Machine.
func (m *Simulated) Reset() error {
	m.after(0, func() { m.post() })
	return nil
}

// Reboot implements Machine.
func (m *Simulated) Reboot() error {
	if m.On() && !m.IgnoresShutdown {
		m.after(m.ShutdownTime, func() { m.post() })
	}
	return nil
}

// Interrupt implements Machine.
func (m *Simulated) Interrupt() error { return nil }

// Insert implements Machine.
func (m *Simulated) Insert(string, string) error { return nil }

// Eject implements Machine.
func (m *Simulated) Eject(string) error { return nil }

// Crash cuts the power without a command of the BMC, as a person in front of the machine does.
func (m *Simulated) Crash() { m.after(0, func() { m.turn(false) }) }

// after calls do after a time, unless there is another command until then.
func (m *Simulated) after(d time.Duration, do func()) {
	m.mu.Lock()
	m.command++
	mine := m.command
	m.mu.Unlock()
	if d == 0 {
		do()
		return
	}
	time.AfterFunc(d, func() {
		m.mu.Lock()
		replaced := m.command != mine
		m.mu.Unlock()
		if !replaced {
			do()
		}
	})
}

// turn switches the power.
func (m *Simulated) turn(on bool) {
	m.mu.Lock()
	changed := m.on != on
	m.on = on
	m.mu.Unlock()
	switch {
	case changed && on:
		m.post()
	case changed:
		m.off()
	}
}
