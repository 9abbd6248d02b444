package machinetest_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// dataBytes is the size of the second disk, which is the smaller one: without root_device, Ironic's agent deploys on the smallest disk.
const dataBytes = diskBytes

// fillData writes a partition table, a file system's signature in the partition, and data to the second disk.
func (c *computer) fillData() (sum string) {
	t := c.rack.t
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sgdisk", "--clear", "--new=1:2048:0", c.Data()).CombinedOutput(); err != nil {
		t.Fatalf("sgdisk: %v: %s", err, out)
	}
	disk, err := os.OpenFile(c.Data(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i*7 + i>>8)
	}
	copy(block, "XFSB")
	for at := int64(1 << 20); at < dataBytes-2<<20; at += dataBytes / 64 {
		if _, err := disk.WriteAt(block, at); err != nil {
			t.Fatal(err)
		}
	}
	return c.sumData()
}

// sumData returns the SHA-256 of the second disk.
func (c *computer) sumData() string { return c.sum(c.Data()) }

// sum returns the SHA-256 of a disk.
func (c *computer) sum(path string) string {
	c.rack.t.Helper()
	disk, err := os.Open(path)
	if err != nil {
		c.rack.t.Fatal(err)
	}
	defer disk.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, disk); err != nil {
		c.rack.t.Fatal(err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

// TestMetal_aKeptDiskKeepsItsBytes follows a machine whose second disk is kept through every verb, and gives the disk up in the end, which
// shows that Ironic's agent would have erased it. No root_device is set, so the agent would deploy on the second disk, the smaller one.
func TestMetal_aKeptDiskKeepsItsBytes(t *testing.T) {
	t.Parallel()
	r := startRack(t, provisioning)
	c := r.machineWith(1, diskBytes+1<<30, dataBytes)
	sum := c.fillData()
	w := r.workspace("")
	defer acctest.Destroy(t, r.Site, w)
	apply := func(what, config string, says ...string) {
		t.Helper()
		w.Configure(config)
		r.step(what, func() { acctest.Mention(t, w.Must(acctest.Apply()...), says...) })
		if got := c.sumData(); got != sum {
			t.Fatalf("after %q, the kept disk has other bytes", what)
		}
	}
	keep := func(hints string, settings ...string) string {
		return c.host(append(settings, "inspect = true", "skip_block_devices = ["+hints+"]")...)
	}
	wwn, available := fmt.Sprintf("{ wwn = %q }", c.DataWWN()), acctest.Target("available")
	apply("inspect", keep(wwn))
	apply("clean", keep(wwn, available), "Cleaning keeps some disks", c.DataSerial())
	apply("deploy", keep(wwn, available)+c.deployment("metal_host.h.id", "one", "first", c.readyCheck()))
	c.await("one")
	c.wantDisk()
	c.awaitEndOfFastTrack()
	apply("rebuild", keep(wwn, available)+c.deployment("metal_host.h.id", "two", "second", c.readyCheck()), "Rebuild keeps some disks")
	c.await("two")
	if !c.isPartitioned() {
		t.Error("the first disk of a deployed machine has no partition table")
	}
	apply("undeploy and clean", keep(wwn, available), c.DataWWN())
	if c.isPartitioned() {
		t.Error("the first disk of an undeployed machine has the partition table of the image")
	}
	acctest.NoChanges(t, w)

	w.Configure(keep("", available, `inspect_triggers = { again = "1" }`))
	r.step("give the disk up, and clean", func() { acctest.Mention(t, w.Must(acctest.Apply()...), "Disks are given up") })
	if c.sumData() == sum {
		t.Error("no cleaning has erased the disk that was given up, so that this test proves nothing")
	}
}
