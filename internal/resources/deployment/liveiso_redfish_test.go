package deployment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// bmcFleet starts machines with BMCs, and returns them with the HCL of their hosts "h".
func bmcFleet(t *testing.T, s *site.Site, n int, settings string, config func(n int) fakebmc.Config) ([]*bmc.Controller, string) {
	var bmcs []*bmc.Controller
	var list strings.Builder
	for i := range n {
		b := bmc.Start(t, s, fmt.Sprintf("m%02d", i), config(i))
		username, password := b.Credentials()
		fmt.Fprintf(&list, "    { name = %q, address = %q, username = %q, password = %q },\n",
			s.Name(fmt.Sprintf("m%02d", i)), b.Address("redfish-virtualmedia"), username, password)
		bmcs = append(bmcs, b)
	}
	return bmcs, fmt.Sprintf(`locals {
  machines = [
%s  ]
}
resource "metal_host" "h" {
  count           = length(local.machines)
  name            = local.machines[count.index].name
  resource_class  = %q
  automated_clean = false
  bmc = {
    address  = local.machines[count.index].address
    username = local.machines[count.index].username
    password = local.machines[count.index].password
  }
  %s
}
`, list.String(), s.Class(), settings)
}

// bmcDeployments is the HCL of deployments of all hosts with the same live ISO. One of them may have host_content.
func bmcDeployments(url string, own int) string {
	return fmt.Sprintf(`resource "metal_deployment" "d" {
  count    = length(local.machines)
  node_id  = metal_host.h[count.index].id
  live_iso = {
    url            = %q
    shared_content = { infra_env = "uid/1" }
    host_content   = count.index == %d ? { nmstate = "uid/8" } : {}
  }
}
`, url, own)
}

// Many machines share a live ISO. Another image for all, with something new for one of them, restarts that one only: the BMCs
// count the boots, and hold the right medium.
func TestAccBMC_liveISORestartsOneOfMany(t *testing.T) {
	t.Parallel()
	s, iso := site.StartWithBMCs(t, &fakeironic.Server{MaxMicroversion: "1.82"}), bmc.ServeISO(t)
	const machines, changed = 5, 3
	bmcs, hosts := bmcFleet(t, s, machines, acctest.Target("available"), func(int) fakebmc.Config { return fakebmc.Config{} })
	provider := s.Provider(`provisioning_limit = { max_concurrent = 0 }`)
	w := acctest.NewWorkspace(t, provider+hosts+bmcDeployments(iso.URL("first"), -1))
	start := time.Now()
	w.Must("apply", "-auto-approve", "-parallelism=30")
	t.Logf("enrolled and booted after %.1f s", time.Since(start).Seconds())
	want := func(other int) {
		t.Helper()
		for i, b := range bmcs {
			boots, medium := 1, "first"
			if i == other {
				boots, medium = 2, "second"
			}
			if booted := b.History(fakebmc.Booted); len(booted) != boots || !strings.HasPrefix(booted[boots-1].Detail, "Cd ") {
				t.Errorf("machine %d has booted %v, want %d boots from its CD", i, booted, boots)
			}
			if !b.MediumIs(medium) {
				t.Errorf("machine %d holds %s, want %s", i, b.Medium(), medium)
			}
		}
	}
	want(-1)
	w.Configure(provider + hosts + bmcDeployments(iso.URL("second"), changed))
	start = time.Now()
	acctest.Mention(t, w.Must("apply", "-auto-approve", "-parallelism=30"), "0 added, 1 changed, 0 destroyed")
	t.Logf("another image restarted one after %.1f s", time.Since(start).Seconds())
	want(changed)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve", "-parallelism=30")
	for i, b := range bmcs {
		if b.On() || b.Medium() != "" {
			t.Errorf("machine %d is on (%v) or holds %q after the destroy", i, b.On(), b.Medium())
		}
	}
}

// The quirks of vendors that Ironic knows do not keep a machine from its live ISO.
func TestAccBMC_liveISODespiteQuirks(t *testing.T) {
	t.Parallel()
	s, iso := site.StartWithBMCs(t, nil), bmc.ServeISO(t)
	if s.Fake != nil {
		t.Skip("the fake Ironic does not know quirks")
	}
	configs := []fakebmc.Config{
		{Quirks: []fakebmc.Quirk{fakebmc.ETags}},
		{Quirks: []fakebmc.Quirk{fakebmc.OnceOnly}},
		{Quirks: []fakebmc.Quirk{fakebmc.TransferProtocol}},
		{Quirks: []fakebmc.Quirk{fakebmc.PatchMedia}},
		{Quirks: []fakebmc.Quirk{fakebmc.EjectBody}},
		{Quirks: []fakebmc.Quirk{fakebmc.USBCD}, Manufacturer: "Supermicro"},
	}
	bmcs, hosts := bmcFleet(t, s, len(configs), acctest.Target("available")+"\n  properties = count.index == 5 ? { vendor "+
		"= \"Supermicro\" } : {}",
		func(n int) fakebmc.Config { return configs[n] })
	w := acctest.NewWorkspace(t, s.Provider()+hosts+bmcDeployments(iso.URL("first"), -1))
	w.Must("apply", "-auto-approve")
	for i, b := range bmcs {
		booted := b.History(fakebmc.Booted)
		if len(booted) == 0 || !strings.Contains(booted[len(booted)-1].Detail, "Cd ") || !b.MediumIs("first") {
			t.Errorf("machine %d with %v: %v", i, configs[i].Quirks, b.History())
		}
	}
	w.Must("destroy", "-auto-approve")
}

// The boot mode of a host's capabilities, and secure boot of a deployment's, reach the BMC before the machine boots.
func TestAccBMC_bootModeReachesTheMachine(t *testing.T) {
	t.Parallel()
	s, iso := site.StartWithBMCs(t, nil), bmc.ServeISO(t)
	if s.Fake != nil {
		t.Skip("the fake Ironic does not set the boot mode at a BMC")
	}
	modes := []string{`{ boot_mode = "bios" }`, `{ boot_mode = "uefi" }`}
	bmcs, hosts := bmcFleet(t, s, len(modes), acctest.Target("available")+"\n  capabilities = ["+strings.Join(modes, ", ")+"][count.index]",
		func(int) fakebmc.Config { return fakebmc.Config{} })
	secure := `capabilities = [null, { boot_mode = "uefi", secure_boot = "true" }][count.index]`
	deployments := strings.Replace(bmcDeployments(iso.URL("first"), -1), "live_iso =", secure+"\n  live_iso =", 1)
	w := acctest.NewWorkspace(t, s.Provider()+hosts+deployments)
	w.Must("apply", "-auto-approve")
	for i, want := range []fakebmc.Boot{{Mode: "Legacy"}, {Mode: "UEFI", SecureBoot: true}} {
		if got := bmcs[i].LastBoot(); got.Mode != want.Mode || got.SecureBoot != want.SecureBoot {
			t.Errorf("machine %d booted with %+v, want %+v; %v", i, got, want, bmcs[i].History())
		}
	}
	w.Must("destroy", "-auto-approve")
}

// Machines that take their time to start do not start all at once: the BMCs see at most as many as the limit allows.
func TestAccBMC_limitHoldsWhileMachinesStart(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	if s.Fake != nil {
		t.Skip("the fake Ironic does not wait for the power of a BMC")
	}
	const limit = 2
	// A shard of its own, so that the hosts of other tests take no slots.
	bmcs, hosts := bmcFleet(t, s, 4, fmt.Sprintf("power_state = \"on\"\n  shard = %q", s.Name("shard")), func(int) fakebmc.Config {
		return fakebmc.Config{Machine: &fakebmc.Simulated{StartTime: 2 * time.Second}}
	})
	w := acctest.NewWorkspace(t, s.Provider(fmt.Sprintf(`provisioning_limit = { max_concurrent = %d, scope = "shard" }`, limit))+hosts)
	w.Must("apply", "-auto-approve")
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for i, b := range bmcs {
		commands, starts := b.History(fakebmc.Commanded), b.History(fakebmc.PoweredOn)
		if len(commands) != 1 || len(starts) != 1 {
			t.Fatalf("machine %d: %v", i, b.History())
		}
		changes = append(changes, change{commands[0].Time, 1}, change{starts[0].Time, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	now, most := 0, 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	if most > limit {
		t.Errorf("%d machines started at once, want %d", most, limit)
	}
	w.Must("destroy", "-auto-approve")
}
