package machinetest_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc/qemu"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// What tools/test-metal tells.
const (
	imagesFolder = "METAL_MACHINE_IMAGES"
	logsFolder   = "METAL_MACHINE_LOGS"
	accelerator  = "METAL_ACCEL"
)

// What the files of tools/metal and Ironic's configuration expect.
const (
	filesPort  = "8097" // Ironic's own, such as a configuration of iPXE for each machine
	imagesPort = "8098"
	reportPort = "8099"
)

// diskBytes is the size of a disk: Ironic rounds it to GB, and refuses less than an image.
const diskBytes = 4 << 30

// patience is how long a step may take on a slow machine without KVM.
const patience = 15 * time.Minute

// network is a network of tools/test-metal, with an Ironic of its own.
type network struct {
	endpoint string     // of Ironic
	address  string     // of this process and Ironic
	leases   string     // the file of the addresses that dnsmasq has given to machines
	free     chan place // where no machine is
}

// place is where a machine can be.
type place struct{ tap, ipmi string }

// provisioning is the network of most machines. In the other one Ironic tells dnsmasq what each machine boots.
var provisioning, toldByIronic *network

// rack is an Ironic with machines that boot.
type rack struct {
	*site.Site
	*network
	t *testing.T
}

// report is what a booted image tells.
type report struct{ Image, Boot, MAC, Hostname, UserData string }

// reports are what all images told so far.
var reports struct {
	sync.Mutex
	all []report
}

// computer is a machine with its BMC.
type computer struct {
	*bmc.Controller
	*qemu.Machine
	rack    *rack
	mac     string
	place   place
	network bool   // boots what Ironic wants from the network
	unplug  func() // takes its cable out of the switch; nil if it was never plugged in
	expects string // the HCL of its port
}

func TestMain(m *testing.M) {
	provisioning = openNetwork("METAL_MACHINE", place{"metal1", "127.0.1.1:623"}, place{"metal2", "127.0.1.2:623"},
		place{"metal3", "127.0.1.3:623"}, place{"metal4", "127.0.1.4:623"})
	toldByIronic = openNetwork("METAL_DNSMASQ", place{"dnsmasq1", "127.0.1.5:623"}, place{"dnsmasq2", "127.0.1.6:623"})
	if images := os.Getenv(imagesFolder); images != "" {
		listen(":"+imagesPort, http.FileServer(http.Dir(images)))
		listen(":"+reportPort, http.HandlerFunc(takeReport))
		listen(":"+registryPort, registry{images})
	}
	os.Exit(m.Run())
}

// openNetwork returns the network of the Ironic whose variables begin with prefix, and serves that Ironic's files. iPXE asks for
// parts of a live ISO, which http.FileServer serves.
func openNetwork(prefix string, places ...place) *network {
	n := &network{endpoint: os.Getenv(prefix + "_ENDPOINT"), free: make(chan place, len(places))}
	if n.endpoint == "" {
		return n
	}
	endpoint, err := url.Parse(n.endpoint)
	if err != nil {
		panic(err)
	}
	n.address, n.leases = endpoint.Hostname(), filepath.Join(os.Getenv(prefix+"_STATE"), "dnsmasq", "leases")
	for _, p := range places {
		n.free <- p
	}
	listen(net.JoinHostPort(n.address, filesPort), http.FileServer(http.Dir(filepath.Join(os.Getenv(prefix+"_STATE"), "http"))))
	return n
}

// listen serves until the process ends.
func listen(address string, handler http.Handler) {
	listener, err := net.Listen("tcp", address) //nolint:noctx // until the process ends
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { panic(server.Serve(listener)) }()
}

func takeReport(_ http.ResponseWriter, q *http.Request) {
	f := q.FormValue
	reports.Lock()
	defer reports.Unlock()
	reports.all = append(reports.all, report{
		Image: f("image"), Boot: f("boot"), MAC: f("mac"), Hostname: f("hostname"),
		UserData: f("user_data"),
	})
}

// startRack returns the Ironic of a network.
func startRack(t *testing.T, n *network) *rack {
	t.Helper()
	return &rack{Site: site.StartMachines(t, n.endpoint), network: n, t: t}
}

// machine returns the nth machine, which is off.
func (r *rack) machine(n int) *computer { return r.machineWith(n, diskBytes) }

// machineWith returns the nth machine, which is off, with disks of these sizes: the first for images, the second, if any, for data.
func (r *rack) machineWith(n int, disks ...int64) *computer {
	r.t.Helper()
	at := <-r.free
	r.t.Cleanup(func() { r.free <- at })
	dir := filepath.Join(os.Getenv(logsFolder), r.Name(fmt.Sprintf("machine-%d", n)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	c := &computer{rack: r, mac: r.MAC(n), place: at}
	serial := r.Name(fmt.Sprintf("sn%d", n))
	var err error
	config := qemu.Config{
		Dir: dir, MAC: c.mac, Serial: serial, Tap: at.tap, CPUs: 1, DiskBytes: disks[0], Emulate: os.Getenv(accelerator) != "kvm",
	}
	if len(disks) > 1 {
		config.DataBytes = disks[1]
	}
	c.Machine, err = qemu.New(config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			r.t.Error(err)
		}
		for _, large := range []string{"disk", "data", "medium-*"} { // the logs stay
			files, _ := filepath.Glob(filepath.Join(dir, large)) // the pattern is good
			for _, file := range files {
				if err := os.Remove(file); err != nil {
					r.t.Error(err)
				}
			}
		}
	})
	c.Controller = bmc.StartAt(r.t, r.Site, net.JoinHostPort(r.address, "0"), fmt.Sprintf("machine-%d", n), fakebmc.Config{
		Machine: c.Machine, Serial: serial, MACs: []string{c.mac}, CPUs: 1, MemoryGiB: 2, Drives: disks,
	})
	return c
}

// networkMachine returns the nth machine, which is off, and boots what Ironic wants from the network.
func (r *rack) networkMachine(n int) *computer {
	r.t.Helper()
	c := r.machine(n)
	c.network = true
	return c
}

// ipmiMachine is networkMachine with IPMI.
func (r *rack) ipmiMachine(n int) *computer {
	r.t.Helper()
	c := r.networkMachine(n)
	c.StartIPMI(c.place.ipmi)
	return c
}

// hardware returns the HCL of the host's BMC, and of its interfaces, such as inspect = "agent".
func (c *computer) hardware(interfaces ...string) string {
	b := c.Block()
	if c.network {
		interfaces = append(interfaces, `boot = "ipxe"`, `deploy = "direct"`)
		if b = c.BlockOf("redfish"); c.IPMI != "" {
			b = c.IPMIBlock()
		}
	}
	if len(interfaces) == 0 {
		return b
	}
	return b + fmt.Sprintf("\n  hardware_interfaces = { %s }", strings.Join(interfaces, ", "))
}

// ports returns the HCL of the host's ports.
func (c *computer) ports() string { return fmt.Sprintf("ports = { %q = { %s } }", c.mac, c.expects) }

// image returns the URL of a file of tools/metal/images.
func (r *rack) image(name string) string {
	return "http://" + net.JoinHostPort(r.address, imagesPort) + "/" + name
}

// workspace returns a workspace whose CLI has time for a deployment.
func (r *rack) workspace(config string) *acctest.Workspace {
	r.t.Helper()
	w := acctest.NewWorkspace(r.t, config)
	w.Patience = patience
	return w
}

// await waits until done returns true. what describes the condition.
func (r *rack) await(what string, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !done(); <-time.After(200 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited %s for %s", patience, what)
		}
	}
}

// await waits for the machine's first report of an image.
func (c *computer) await(image string) (got report) {
	c.rack.t.Helper()
	c.rack.await("a report of "+image+" from "+c.mac, func() bool {
		for _, got = range c.reports() {
			if got.Image == image {
				return true
			}
		}
		return false
	})
	return got
}

// reports returns what the images of the machine told so far.
func (c *computer) reports() []report {
	reports.Lock()
	defer reports.Unlock()
	var own []report
	for _, got := range reports.all {
		if got.MAC == c.mac {
			own = append(own, got)
		}
	}
	return own
}

// leased returns the address that Ironic's ramdisk had on the machine. The images get the same one, because they ask for it by the same
// client ID, the MAC address; iPXE and the firmware have others.
func (c *computer) leased() string {
	c.rack.t.Helper()
	text, err := os.ReadFile(c.rack.leases)
	if err != nil {
		c.rack.t.Fatal(err)
	}
	address := ""
	for line := range strings.Lines(string(text)) { // time, MAC address, address, name, client
		if fields := strings.Fields(line); len(fields) == 5 && fields[4] == "01:"+c.mac {
			address = fields[2]
		}
	}
	if address == "" {
		c.rack.t.Fatalf("dnsmasq has given no address to %s:\n%s", c.mac, text)
	}
	return address
}

// isPartitioned reports whether the disk has a GPT.
func (c *computer) isPartitioned() bool {
	c.rack.t.Helper()
	disk, err := os.Open(c.Disk())
	if err != nil {
		c.rack.t.Fatal(err)
	}
	defer disk.Close()
	header := make([]byte, 8)
	if _, err := disk.ReadAt(header, 512); err != nil {
		c.rack.t.Fatal(err)
	}
	return string(header) == "EFI PART"
}

// step runs a step of a story and logs its duration.
func (r *rack) step(what string, run func()) {
	r.t.Helper()
	start := time.Now()
	run()
	r.t.Logf("%s: %s", what, time.Since(start).Round(time.Second))
}
