package fakebmc

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 builds name-based UUIDs with it
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// Quirk is a deviation of a vendor's BMC that Ironic knows.
type Quirk string

// The quirks.
const (
	// OnceOnly refuses a continuous boot override. Ironic then overrides the boot anew before each boot.
	OnceOnly Quirk = "once only"
	// USBCD is Supermicro's: the CD of virtual media boots only as UsbCd, and a boot override needs its duration each time.
	USBCD Quirk = "USB CD"
	// TransferProtocol refuses to insert a medium without TransferProtocolType.
	TransferProtocol Quirk = "transfer protocol"
	// PatchMedia is Lenovo's: media have no actions; clients insert and eject with PATCH.
	PatchMedia Quirk = "patch media"
	// EjectBody is HPE's: the action that ejects a medium needs a body, which may be empty.
	EjectBody Quirk = "eject body"
	// ETags refuses changes of the boot override that do not name the ETag of the system.
	ETags Quirk = "ETags"
	// VolumesOnReset changes volumes only when the machine restarts.
	VolumesOnReset Quirk = "volumes on reset"
)

// Config describes a BMC and the machine behind it. Only Name is needed.
type Config struct {
	Name               string // the machine is /redfish/v1/Systems/NAME
	Username, Password string // empty means admin, and a password that Credentials returns

	Manufacturer, Model, Serial string
	MACs                        []string
	CPUs, MemoryGiB             int
	Drives                      []int64 // bytes

	Heard map[string]Announcement // what ports of the network adapter have heard by LLDP, by Id of the port

	Quirks []Quirk

	// UpdateTime is the duration of a firmware update, RestartTime that of the BMC's restart after its own update. Zero means at
	// once.
	UpdateTime, RestartTime time.Duration

	// Machine is what the BMC controls; nil means a new Simulated.
	Machine Machine
}

// Announcement is what a switch says by LLDP.
type Announcement struct{ Chassis, Port, System string }

// BMC is one BMC of a Server, with its machine.
type BMC struct {
	config  Config
	machine Machine

	mu        sync.Mutex
	password  string
	history   []Event
	downUntil time.Time // until then the BMC restarts

	led         string
	override    string    // boot source, overrideNone and so on
	duration    string    // of the override
	mode        string    // of booting
	overrideEnd time.Time // the override that no boot used ends then; zero means never
	secureBoot  struct{ enabled, now bool }
	bios        struct {
		now, pending object
		applied      time.Time
	}
	drives   map[string]*medium // by name
	volumes  []*volume
	firmware map[string]string // versions by component
	lastBoot Boot
	staged   []func() // what the next boot applies
	sequence int
}

// defaults fills in what is not configured.
func (c *Config) defaults() {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(c.Name)) // never fails
	number := sum.Sum64()
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.Username, "admin")
	set(&c.Password, fmt.Sprintf("password-%08x", uint32(number>>32)))
	set(&c.Manufacturer, "Contoso")
	set(&c.Model, "3500")
	set(&c.Serial, fmt.Sprintf("SN%010X", number&0xffffffffff))
	if len(c.MACs) == 0 {
		c.MACs = []string{fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", number>>24&0xff, number>>16&0xff, number>>8&0xff, number&0xff)}
	}
	if c.CPUs == 0 {
		c.CPUs = 16
	}
	if c.MemoryGiB == 0 {
		c.MemoryGiB = 64
	}
	if len(c.Drives) == 0 {
		c.Drives = []int64{480e9, 480e9}
	}
	if c.Machine == nil {
		c.Machine = &Simulated{}
	}
}

// Path returns the path of the machine's system, such as /redfish/v1/Systems/rack1-01.
func (b *BMC) Path() string { return root + "/Systems/" + b.config.Name }

// Credentials returns the user name and the password.
func (b *BMC) Credentials() (username, password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config.Username, b.password
}

// SetPassword changes the password. It ends sessions with the old one.
func (b *BMC) SetPassword(password string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.password = password
}

func (b *BMC) accepts(username, password string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return username == b.config.Username && password == b.password
}

func (b *BMC) has(q Quirk) bool { return slices.Contains(b.config.Quirks, q) }

func (b *BMC) manager() string { return root + "/Managers/" + b.config.Name }

func (b *BMC) chassis() string { return root + "/Chassis/" + b.config.Name }

// Config returns how the BMC was configured, with what was not.
func (b *BMC) Config() Config { return b.config }

// Name returns the name of the machine.
func (b *BMC) Name() string { return b.config.Name }

// UUID returns the UUID of the BMC itself.
func (b *BMC) UUID() string { return b.uuid("manager") }

// uuid returns the UUID of a part of the machine.
func (b *BMC) uuid(part string) string {
	sum := sha1.Sum([]byte(b.config.Name + "/" + part)) //nolint:gosec // as above
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Restarting reports whether the BMC is silent because it restarts.
func (b *BMC) Restarting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.downUntil)
}

// Restart makes the BMC silent for the time of its restart. The machine keeps running.
func (b *BMC) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.downUntil = time.Now().Add(b.config.RestartTime)
	b.note(ManagerRestarted, "")
}
