package machinetest_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// fastTrackTimeout is longer than the one in tools/ironic-up.
const fastTrackTimeout = 65 * time.Second

const userData = "#cloud-config\npackages: [nginx]\n"

// host returns the HCL of the machine's host "h", which the agent inspects, with further settings.
func (c *computer) host(settings ...string) string {
	return c.rack.Provider() + acctest.HostBlock(c.rack.Name("host"), append([]string{c.hardware(`inspect = "agent"`), c.ports()},
		settings...)...)
}

// deployment returns the HCL of a deployment of an image of tools/metal/images, with further settings.
func (c *computer) deployment(node, image, hostname string, settings ...string) string {
	return acctest.Deployment(node, append(settings,
		fmt.Sprintf("image = {\n    url = %q\n    checksum = %q\n    disk_format = \"raw\"\n  }", c.rack.image(image+".img"),
			c.rack.image("SHA256SUMS")),
		fmt.Sprintf("config_drive = {\n    hostname = %q\n    user_data = %q\n  }", hostname, userData))...)
}

// readyCheck returns the HCL of a ready check of the port that the images open when they have reported.
func (c *computer) readyCheck() string {
	return fmt.Sprintf("ready_check = { tcp = %q, timeout = %q }", net.JoinHostPort(c.leased(), "22"), patience)
}

// wantReported fails the test unless the machine has reported an image: an apply with a ready check does not end before that.
func (c *computer) wantReported(image string) {
	c.rack.t.Helper()
	if got := c.reports(); !slices.ContainsFunc(got, func(r report) bool { return r.Image == image }) {
		c.rack.t.Errorf("the apply has ended, and the machine has reported %v, and not %s", got, image)
	}
}

// want fails the test unless a report is of an image with the config drive of deployment.
func (c *computer) want(got report, image, hostname string) {
	c.rack.t.Helper()
	want := report{
		Image: image, Boot: got.Boot, MAC: c.mac, Hostname: hostname,
		UserData: fmt.Sprintf("%x", sha256.Sum256([]byte(userData))),
	}
	if got != want {
		c.rack.t.Errorf("the machine reports %+v, want %+v", got, want)
	}
}

// boots returns how often the machine has booted from virtual media or, if it boots from there, from the network.
func (c *computer) boots() int {
	n := 0
	for _, e := range c.History(fakebmc.Booted) {
		if c.network && e.Detail == "Pxe" || !c.network && strings.HasPrefix(e.Detail, "Cd ") {
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
	r.await("Ironic to work on the deployment", func() bool { return site.IsBusy(r.Site, r.Name("host"), site.BusyDeploying()) })
	end(r.t, r.Site, running)
	w.Must(acctest.Apply()...)
}

// wantBoots fails the test unless Ironic has booted the machine n times from virtual media or the network: a run that continues
// another's work does not repeat it.
func (c *computer) wantBoots(n int) {
	c.rack.t.Helper()
	if got := c.boots(); got != n {
		c.rack.t.Errorf("Ironic has booted the machine %d times, want %d: %v", got, n, c.History(fakebmc.Booted))
	}
}

// awaitEndOfFastTrack waits until Ironic no longer takes a ramdisk that has ended for running (reference/ironic.md#fast-track).
func (c *computer) awaitEndOfFastTrack() {
	r := c.rack
	r.t.Helper()
	r.await("the fast track to end", func() bool {
		internal, _ := r.Node(r.Name("host"))["driver_internal_info"].(map[string]any)
		last, err := time.Parse("2006-01-02T15:04:05", strings.Split(site.Text(internal["agent_last_heartbeat"]), ".")[0])
		return err == nil && time.Since(last) > fastTrackTimeout
	})
}

// TestMetal_aDiskIsInspectedCleanedDeployedRebuiltAndCleaned follows a machine from the BMC's address to a running system and back.
func TestMetal_aDiskIsInspectedCleanedDeployedRebuiltAndCleaned(t *testing.T) {
	t.Parallel()
	startRack(t, provisioning).machine(1).live(acctest.Kill, interrupt)
}

// interrupt is a Stop.
func interrupt(t *testing.T, _ *site.Site, running *acctest.Running) {
	acctest.Interrupt(t, running)
}

// inspect enrolls the machine and lets Ironic inspect it, moves its cable to another port of the switch and inspects it again. A plan says
// where the cable ends. It returns the settings of the host that do so.
func (c *computer) inspect(w *acctest.Workspace) (inspected string) {
	r, t := c.rack, c.rack.t
	t.Helper()
	c.plug(rightPort)
	c.expects = `expect_neighbor = { switch = "leaf-1", port = "Ethernet1/1" }`
	w.Configure(c.host("inspect = true") + c.shown())
	r.step("enroll and inspect", func() { w.Must(acctest.Apply()...) })
	c.wantShown(w, rightPort)
	acctest.NoChanges(t, w)
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Warning")

	c.plug(wrongPort)
	inspected = "inspect = true\n  inspect_triggers = { cabling = \"moved\" }"
	w.Configure(c.host(inspected) + c.shown())
	r.step("inspect again", func() { w.Must(acctest.Apply()...) })
	acctest.Mention(t, w.Must(acctest.Apply()...), "Cables of host "+r.Name("host")+" are not as expected",
		c.mac+" is connected to "+leaf+" "+wrongPort+", not to leaf-1 Ethernet1/1.")
	c.wantShown(w, wrongPort)
	acctest.NoChanges(t, w)
	return inspected
}

// live follows the machine from the BMC's address to a running system and back, and ends the deployment and the rebuild before their
// time.
func (c *computer) live(endDeploy, endRebuild acctest.Stop) {
	r, t := c.rack, c.rack.t
	t.Helper()
	w := r.workspace("")
	defer acctest.Destroy(t, r.Site, w)
	inspected := c.inspect(w)
	available := c.host(inspected, acctest.Target("available"))
	w.Configure(available)
	r.step("clean", func() { w.Must(acctest.Apply()...) })

	ready := c.readyCheck()
	w.Configure(available + c.deployment("metal_host.h.id", "one", "first", ready))
	r.step("deploy, cut off in between, until it answers", func() { c.cutOff(w, endDeploy) })
	c.wantReported("one")
	r.step("boot from disk", func() { c.want(c.await("one"), "one", "first") })
	acctest.NoChanges(t, w)
	c.wantBoots(2)
	c.wantDisk()

	c.awaitEndOfFastTrack()
	w.Configure(available + c.deployment("metal_host.h.id", "two", "second", ready))
	r.step("rebuild, cut off in between, until it answers", func() { c.cutOff(w, endRebuild) })
	c.wantReported("two")
	r.step("boot from disk", func() { c.want(c.await("two"), "two", "second") })
	acctest.NoChanges(t, w)
	c.wantBoots(3)
	c.wantDisk()
	if !c.isPartitioned() {
		t.Error("the disk of a deployed machine has no partition table")
	}

	w.Configure(available)
	r.step("undeploy and clean", func() { w.Must(acctest.Apply()...) })
	if c.isPartitioned() {
		t.Error("the disk of an undeployed machine has the partition table of the image")
	}
	c.wantBoots(4)
}

// wantDisk fails the test unless the BMC boots the machine from its disk, now and later.
func (c *computer) wantDisk() {
	c.rack.t.Helper()
	if got := c.LastBoot().Source; got != "Hdd" {
		c.rack.t.Errorf("the deployed machine boots from %s, want Hdd: %v", got, c.History(fakebmc.Booted))
	}
}
