// Package machine is the hardware behind a node, and what it reports.
package machine

// Machine is the hardware behind a node.
type Machine struct {
	Starts int
	Booted string // the ISO that it booted last; "" if it booted something else

	Device     string            // the selected boot device
	Persistent any               // true: for every boot; false: for the next boot only; nil: no device is selected
	Indicators map[string]string // what its lights show, by their names; those that are off may be missing
	Drive      string            // the ISO in its virtual CD drive
	Image      string            // the URL of the conductor's copy of that ISO, which the BMC uses
	Network    string            // the ISO for network boot

	Agent bool // Ironic's agent runs on it and reports

	Disks []*Disk // nil until a step or a test needs them

	Console *Console // nil: Ironic has started none

	BIOS     map[string]BIOSSetting // nil until a step or a test sets them
	Firmware map[string]*Component  // by name, likewise
}

// Boot devices.
const (
	DevicePXE   = "pxe"
	DeviceDisk  = "disk"
	DeviceCDROM = "cdrom"
)

// BootFrom selects the boot device.
func (m *Machine) BootFrom(device string, persistent bool) {
	m.Device, m.Persistent = device, persistent
}

// Start boots the machine. It boots from the network if its drive is empty or no device is selected.
func (m *Machine) Start() {
	m.Starts++
	m.Agent = false
	m.Booted = m.Network
	switch {
	case m.Persistent == nil:
	case m.Device == DeviceCDROM && m.Drive != "":
		m.Booted = m.Drive
	case m.Device == DeviceDisk:
		m.Booted = ""
	}
	if m.Persistent == false {
		m.Persistent = nil
	}
}

// Insert puts an ISO into the machine's drive; image is the URL of the conductor's copy, which the BMC uses.
func (m *Machine) Insert(iso, image string) { m.Drive, m.Image = iso, image }

// Empty removes the ISO of a boot interface from the network or from the drive.
func (m *Machine) Empty(boot string) {
	if Netboots(boot) {
		m.Network = ""
		return
	}
	m.Insert("", "")
}

// Netboots reports whether a boot interface boots machines from the network.
func Netboots(boot string) bool { return boot == "ipxe" || boot == "pxe" }
