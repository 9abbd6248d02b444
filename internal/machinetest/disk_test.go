package machinetest_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakebmc"
)

// fastTrackTimeout is longer than the one in tools/ironic-up.
const fastTrackTimeout = 65 * time.Second

const userData = "#cloud-config\npackages: [nginx]\n"

// host returns the HCL of the machine's host "h" with further settings.
func (c *computer) host(settings ...string) string {
	return c.rack.Provider() + acctest.HostBlock(c.rack.Name("host"), append([]string{
		c.Block(), "ports = { " + acctest.Quoted(c.mac) + " = {} }",
	}, settings...)...)
}

// deployment returns the HCL of a deployment of an image of tools/metal/images.
func (c *computer) deployment(node, image, hostname string) string {
	return acctest.Deployment(node,
		fmt.Sprintf("image = {\n    url = %q\n    checksum = %q\n    disk_format = \"raw\"\n  }", c.rack.image(image+".img"), c.rack.image("SHA256SUMS")),
		fmt.Sprintf("config_drive = {\n    hostname = %q\n    user_data = %q\n  }", hostname, userData))
}

// want fails the test unless a report is of an image with the config drive of deployment.
func (c *computer) want(got report, image, hostname string) {
	c.rack.t.Helper()
	want := report{Image: image, Boot: got.Boot, MAC: c.mac, Hostname: hostname, UserData: fmt.Sprintf("%x", sha256.Sum256([]byte(userData)))}
	if got != want {
		c.rack.t.Errorf("the machine reports %+v, want %+v", got, want)
	}
}

// ramdisks returns how often the machine has booted from virtual media.
func (c *computer) ramdisks() int {
	n := 0
	for _, e := range c.History(fakebmc.Booted) {
		if strings.HasPrefix(e.Detail, "Cd ") {
			n++
		}
	}
	return n
}

// cutOff starts an apply, ends it while Ironic works on the deployment, and applies again.
func (c *computer) cutOff(w *acctest.Workspace, end acctest.Stop) {
	r := c.rack
	r.t.Helper()
	running := w.Start(acctest.Apply()...)
	r.await("Ironic to work on the deployment", func() bool { return acctest.IsBusy(r.Site, r.Name("host"), acctest.BusyDeploying()) })
	end(r.t, r.Site, running)
	w.Must(acctest.Apply()...)
}

// wantBoots fails the test unless the machine has booted from virtual media n times: a run that continues another's work does not
// repeat it.
func (c *computer) wantBoots(n int) {
	c.rack.t.Helper()
	if got := c.ramdisks(); got != n {
		c.rack.t.Errorf("the machine has booted %d times from virtual media, want %d: %v", got, n, c.History(fakebmc.Booted))
	}
}

// awaitEndOfFastTrack waits until Ironic no longer takes a ramdisk that has ended for running (reference/ironic.md#fast-track).
func (c *computer) awaitEndOfFastTrack() {
	r := c.rack
	r.t.Helper()
	r.await("the fast track to end", func() bool {
		internal, _ := r.Node(r.Name("host"))["driver_internal_info"].(map[string]any)
		last, err := time.Parse("2006-01-02T15:04:05", strings.Split(acctest.Text(internal["agent_last_heartbeat"]), ".")[0])
		return err == nil && time.Since(last) > fastTrackTimeout
	})
}

// TestMetal_aDiskIsInspectedCleanedDeployedRebuiltAndCleaned follows a machine from the BMC's address to a running system and back.
func TestMetal_aDiskIsInspectedCleanedDeployedRebuiltAndCleaned(t *testing.T) {
	r := startRack(t)
	c := r.machine(1)
	inspected := []string{`hardware_interfaces = { inspect = "agent" }`, "inspect = true"}
	w := r.workspace(c.host(inspected...) + "data \"metal_host\" \"h\" {\n  id = metal_host.h.id\n}\noutput \"inventory\" { value = jsonencode(data.metal_host.h.inventory) }\n")
	defer acctest.Destroy(t, r.Site, w)
	r.step("enroll and inspect", func() { w.Must(acctest.Apply()...) })
	acctest.Mention(t, strings.ReplaceAll(w.Must("output", "-raw", "inventory"), `\"`, `"`),
		fmt.Sprintf(`"mac":%q`, c.mac), `"cpus":1`, `"memory_mb":2048`, fmt.Sprintf(`"serial_number":%q`, r.Name("sn1")))
	acctest.NoChanges(t, w)

	available := append(inspected, acctest.Target("available"))
	w.Configure(c.host(available...))
	r.step("clean", func() { w.Must(acctest.Apply()...) })

	w.Configure(c.host(available...) + c.deployment("metal_host.h.id", "one", "first"))
	r.step("deploy, killed in between", func() { c.cutOff(w, acctest.Kill) })
	r.step("boot from disk", func() { c.want(c.await("one"), "one", "first") })
	acctest.NoChanges(t, w)
	c.wantBoots(1)

	c.awaitEndOfFastTrack()
	w.Configure(c.host(available...) + c.deployment("metal_host.h.id", "two", "second"))
	r.step("rebuild, interrupted in between", func() {
		c.cutOff(w, func(t *testing.T, _ *acctest.Site, running *acctest.Running) { acctest.Interrupt(t, running) })
	})
	r.step("boot from disk", func() { c.want(c.await("two"), "two", "second") })
	acctest.NoChanges(t, w)
	c.wantBoots(2)
	if !c.isPartitioned() {
		t.Error("the disk of a deployed machine has no partition table")
	}

	w.Configure(c.host(available...))
	r.step("undeploy and clean", func() { w.Must(acctest.Apply()...) })
	if c.isPartitioned() {
		t.Error("the disk of an undeployed machine has the partition table of the image")
	}
	c.wantBoots(3)
}
