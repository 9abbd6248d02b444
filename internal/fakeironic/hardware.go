package fakeironic

// machine is the hardware behind a node.
type machine struct {
	starts int
	booted string // the ISO that it started from last, "" for anything else

	device     string // what it was told to start from
	persistent any    // true: always; false: the next time only; nil: its firmware decides
	drive      string // the ISO in its virtual CD drive
	image      string // the conductor's copy of that ISO, which is what the BMC knows
	network    string // the ISO that its network offers
}

// Boot devices.
const (
	devicePXE   = "pxe"
	deviceDisk  = "disk"
	deviceCDROM = "cdrom"
)

// bootFrom tells the machine what to start from.
func (m *machine) bootFrom(device string, persistent bool) {
	m.device, m.persistent = device, persistent
}

// start lets the machine start. Where its drive is empty, or nobody has told it what to start from, the network comes
// first.
func (m *machine) start() {
	m.starts++
	m.booted = m.network
	switch {
	case m.persistent == nil:
	case m.device == deviceCDROM && m.drive != "":
		m.booted = m.drive
	case m.device == deviceDisk:
		m.booted = ""
	}
	if m.persistent == false {
		m.persistent = nil
	}
}

// PowerCycles tells how often the machine of a node was started: once for each time that its power_state became "power on"
// from anything else, and once for each restart ("rebooting", "soft rebooting") of a machine that was on, whoever asked for
// it. So each of these counts 1: switching on, restarting, a deployment or rebuild with the deploy interface ramdisk
// (which switch off and on), a cleaning with a ramdisk; a deployment with direct counts 2, for the ramdisk and for the
// image. Switching on what is on, switching off, undeploying, and everything with the deploy interface fake count nothing,
// as does what fails before the machine is switched on. Inspection and rescue touch no power in this server.
// Set does not count. Unknown nodes have 0.
func (s *Server) PowerCycles(ref string) int {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		return n.machine.starts
	}
	return 0
}

// BootedISO is the URL of the ISO that the machine of a node started from last, "" if that was something else or it never
// started. It is read when the machine starts: after a deployment or rebuild with the deploy interface ramdisk it is the
// boot_iso of that moment, however often the machine is restarted and whatever boot_iso says later; once other media were
// attached, the next start with the boot device cdrom boots those. Unknown nodes have "".
func (s *Server) BootedISO(ref string) string {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		return n.machine.booted
	}
	return ""
}

// switchPower is what the conductor does to have the node on or off; nothing, if it is.
func (s *Server) switchPower(n *node, to string) {
	if n.str("power_state") == to {
		return
	}
	s.notePowerChange(n)
	n.put("power_state", to)
	if to == powerOn {
		n.machine.start()
	}
}

// restart switches the node off, if it is on, and on.
func (s *Server) restart(n *node) {
	s.notePowerChange(n)
	n.put("power_state", powerOn)
	n.machine.start()
}

// notePowerChange notes when Ironic began to change the power of the node, be it in vain.
func (s *Server) notePowerChange(n *node) {
	n.note("last_power_state_change", s.now.UTC().Format("2006-01-02T15:04:05.000000"))
}
