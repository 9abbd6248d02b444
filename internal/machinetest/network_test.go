package machinetest_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// TestMetal_aMachineThatBootsFromTheNetwork follows a machine with iPXE as TestMetal_aDisk... does with virtual media.
func TestMetal_aMachineThatBootsFromTheNetwork(t *testing.T) {
	t.Parallel()
	startRack(t, provisioning).networkMachine(1).live(interrupt, acctest.Kill)
}

// TestMetal_anUnknownMachineThatBootsFromTheNetwork powers a machine on that Ironic does not know, and that has nothing else to boot.
func TestMetal_anUnknownMachineThatBootsFromTheNetwork(t *testing.T) {
	t.Parallel()
	startRack(t, provisioning).networkMachine(1).arrive()
}

// TestMetal_aLiveISOOverTheNetwork boots a machine from a live ISO that iPXE reads over HTTP, and from another.
func TestMetal_aLiveISOOverTheNetwork(t *testing.T) {
	t.Parallel()
	r := startRack(t, provisioning)
	c := r.networkMachine(1)
	config := func(name string) string {
		return r.Provider() + acctest.HostBlock(r.Name("host"), "automated_clean = false", acctest.Target("available"), c.hardware(), c.ports()) +
			acctest.Deployment("metal_host.h.id", fmt.Sprintf("live_iso = {\n    url = %q\n    host_content = { image = %q }\n    quiet_period = \"0s\"\n  }", r.image(name+".iso"), name))
	}
	w := r.workspace(config("one"))
	defer acctest.Destroy(t, r.Site, w)
	for i, name := range []string{"one", "two"} {
		w.Configure(config(name))
		r.step("boot "+name, func() {
			w.Must(acctest.Apply()...)
			c.await("live-" + name)
		})
		acctest.NoChanges(t, w)
		c.wantBoots(i + 1)
	}
}

// TestMetal_aMachineWithBIOS boots a machine without UEFI, for which Ironic tells dnsmasq what it boots.
func TestMetal_aMachineWithBIOS(t *testing.T) {
	t.Parallel()
	r := startRack(t, toldByIronic)
	c := r.networkMachine(1)
	available := c.host(`capabilities = { boot_mode = "bios" }`, acctest.Target("available"))
	w := r.workspace(available)
	defer acctest.Destroy(t, r.Site, w)
	r.step("enroll and clean", func() { w.Must(acctest.Apply()...) })
	acctest.NoChanges(t, w)

	w.Configure(available + c.deployment("metal_host.h.id", "one", "legacy"))
	r.step("deploy", func() { w.Must(acctest.Apply()...) })
	r.step("boot from disk", func() { c.want(c.await("one"), "one", "legacy") })
	acctest.NoChanges(t, w)
	c.wantDisk()
	c.wantBoots(1)
	if got := c.LastBoot().Mode; got != "Legacy" {
		t.Errorf("the machine has booted with %s, want Legacy", got)
	}

	w.Configure(available)
	r.step("undeploy and clean", func() { w.Must(acctest.Apply()...) })
	c.wantBoots(2)
}
