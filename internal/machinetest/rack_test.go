package machinetest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakebmc/qemu"
)

// What the files of tools/metal expect, and what tools/test-metal tells.
const (
	reportPort   = "8099"
	imagesPort   = "8098"
	imagesFolder = "METAL_MACHINE_IMAGES"
	logsFolder   = "METAL_MACHINE_LOGS"
	accelerator  = "METAL_ACCEL"
)

// diskBytes is the size of a disk: Ironic rounds it to GB, and refuses less than an image.
const diskBytes = 4 << 30

// patience is how long a step may take on a slow machine without KVM.
const patience = 15 * time.Minute

// rack is an Ironic with machines that boot.
type rack struct {
	*acctest.Site
	t       *testing.T
	address string // where machines reach this process

	mu      sync.Mutex
	reports []report
}

// report is what a booted image tells.
type report struct{ Image, Boot, MAC, Hostname, UserData string }

// computer is a machine with its BMC.
type computer struct {
	*acctest.Controller
	*qemu.Machine
	rack *rack
	mac  string
}

// startRack returns the Ironic of tools/test-metal.
func startRack(t *testing.T) *rack {
	t.Helper()
	s := acctest.StartMachines(t)
	endpoint, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r := &rack{Site: s, t: t, address: endpoint.Hostname()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(_ http.ResponseWriter, q *http.Request) {
		f := q.FormValue
		got := report{Image: f("image"), Boot: f("boot"), MAC: f("mac"), Hostname: f("hostname"), UserData: f("user_data")}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reports = append(r.reports, got)
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(r.address, reportPort))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Shutdown(context.WithoutCancel(t.Context())) })
	return r
}

// machine returns the nth machine, which is off; n is 1 or 2.
func (r *rack) machine(n int) *computer {
	r.t.Helper()
	dir := filepath.Join(os.Getenv(logsFolder), r.Name(fmt.Sprintf("machine-%d", n)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	c := &computer{rack: r, mac: r.MAC(n)}
	serial := r.Name(fmt.Sprintf("sn%d", n))
	var err error
	c.Machine, err = qemu.New(qemu.Config{
		Dir: dir, MAC: c.mac, Serial: serial, Tap: fmt.Sprintf("metal%d", n), CPUs: 1, DiskBytes: diskBytes, Emulate: os.Getenv(accelerator) != "kvm",
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			r.t.Error(err)
		}
		for _, large := range []string{"disk", "medium-*"} { // the logs stay
			files, _ := filepath.Glob(filepath.Join(dir, large)) // the pattern is good
			for _, file := range files {
				if err := os.Remove(file); err != nil {
					r.t.Error(err)
				}
			}
		}
	})
	c.Controller = r.StartBMCAt(net.JoinHostPort(r.address, "0"), fmt.Sprintf("machine-%d", n), fakebmc.Config{
		Machine: c.Machine, Serial: serial, MACs: []string{c.mac}, CPUs: 1, MemoryGiB: 2, Drives: []int64{diskBytes},
	})
	return c
}

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
	c.rack.mu.Lock()
	defer c.rack.mu.Unlock()
	var own []report
	for _, got := range c.rack.reports {
		if got.MAC == c.mac {
			own = append(own, got)
		}
	}
	return own
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
