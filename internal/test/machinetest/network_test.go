package machinetest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// What Ironic sends a BMC with IPMI as boot flags: parameter 5, once or persistent with UEFI or without, and the device
// (reference/ironic.md#ipxe).
const (
	networkOnce = "05a004000000"
	diskForEver = "05e008000000"
	biosNetwork = "058004000000"
	biosDisk    = "05c008000000"
)

// wantFlags fails the test unless Ironic sent these boot flags in this order. It may repeat them.
func (c *computer) wantFlags(want ...string) {
	c.rack.t.Helper()
	var sent []string
	for _, r := range c.Server.Requests() {
		if strings.HasSuffix(r.Path, "/Set System Boot Options") && strings.HasPrefix(r.Body, "05") {
			sent = append(sent, r.Body)
		}
	}
	if got := slices.Compact(sent); !slices.Equal(got, want) {
		c.rack.t.Errorf("Ironic sent the boot flags %v, want %v", got, want)
	}
}

// TestMetalNetwork_aMachineWithIPMIIsDeployedAndRebuilt does with IPMI and iPXE what TestMetal_aDisk... does with virtual media.
func TestMetalNetwork_aMachineWithIPMIIsDeployedAndRebuilt(t *testing.T) {
	t.Parallel()
	c := startRack(t, provisioning).ipmiMachine(1)
	c.live(interrupt, acctest.Kill)
	c.wantFlags(networkOnce, diskForEver, networkOnce, diskForEver, networkOnce)
}

// TestMetalNetwork_anUnknownMachineIsDiscoveredNamedAndDeployed powers a machine on that Ironic does not know, and that has nothing else to
// boot.
func TestMetalNetwork_anUnknownMachineIsDiscoveredNamedAndDeployed(t *testing.T) {
	t.Parallel()
	startRack(t, provisioning).networkMachine(1).arrive()
}

// TestMetalNetwork_aLiveISO boots a machine from a live ISO that iPXE reads over HTTP, and from another.
func TestMetalNetwork_aLiveISO(t *testing.T) {
	t.Parallel()
	r := startRack(t, provisioning)
	c := r.ipmiMachine(1)
	config := func(name string) string {
		return r.Provider() + acctest.HostBlock(r.Name("host"), "automated_clean = false", acctest.Target("available"),
			c.hardware(), c.ports()) +
			acctest.Deployment("metal_host.h.id", fmt.Sprintf("live_iso = {\n    url = %q\n    host_content = { image = %q }\n "+
				"   quiet_period = \"0s\"\n  }", r.image(name+".iso"), name))
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

// TestMetalNetwork_aMachineWithBIOS boots a machine without UEFI, for which Ironic tells dnsmasq what it boots.
func TestMetalNetwork_aMachineWithBIOS(t *testing.T) {
	t.Parallel()
	r := startRack(t, toldByIronic)
	c := r.ipmiMachine(1)
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
	c.wantFlags(biosNetwork, biosDisk, biosNetwork)
}
