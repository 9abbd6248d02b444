package deploy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// bootAction says what a live ISO of a version asks of a node.
func bootAction(n *ironic.Node, version string, change ...func(*bootiso.Want)) bootiso.Status {
	want := *sitetest.Live(version).LiveISO
	for _, c := range change {
		c(&want)
	}
	return bootiso.Decide(bootiso.Input{Machine: deploy.BootFacts(n), Want: want, Now: time.Now()}).Now
}

// always makes any new image restart a machine.
func always(w *bootiso.Want) { w.Policy = bootiso.PolicyAlways }

func TestBootRecord_missing(t *testing.T) {
	t.Parallel()
	for name, happened := range map[string]func(t *testing.T, fake *fakeironic.Server, id string){
		"without a record": func(_ *testing.T, fake *fakeironic.Server, id string) { fake.Set(id, "extra", map[string]any{}) },
		"with another's": func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "extra", map[string]any{"terraform_metal_boot": "yesterday"})
		},
		"when another client deployed it": func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "instance_info", map[string]any{"boot_iso": "http://images/theirs.iso", "deploy_interface": "ramdisk"})
		},
		"when it has an image now": func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "instance_info", map[string]any{"image_source": "http://images/theirs.qcow2"})
		},
		"while it is deployed": func(t *testing.T, fake *fakeironic.Server, id string) {
			t.Helper()
			ironictest.AsOther(t, fake, "PUT", "nodes/"+id+"/states/provision", map[string]any{"target": "rebuild"})
		},
		"after it was undeployed": func(t *testing.T, fake *fakeironic.Server, id string) {
			t.Helper()
			ironictest.AsOther(t, fake, "PUT", "nodes/"+id+"/states/provision", map[string]any{"target": "deleted"})
			<-time.After(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, _ := sitetest.Booted(t, "1.82", sitetest.OverNetwork)
				happened(t, fake, id)
				node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if record := deploy.BootRecord(node); record != nil {
					t.Errorf("the record is %+v", record)
				}
				status := bootAction(node, "2")
				if status.Action != bootiso.None || !slices.Equal(status.Obsolete, []string{bootiso.ObsoleteUnknown}) {
					t.Errorf("decided %+v", status)
				}
			})
		})
	}
}

func TestBootRecord_restartByHandKeepsIt(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := sitetest.Booted(t, "1.115", sitetest.FromMedia)
		ironictest.AsOther(t, fake, "PUT", "nodes/"+id+"/states/power", map[string]any{"target": "rebooting"})
		<-time.After(time.Hour)
		wantBooted(t, fake, id, "1", 2)
	})
}

func TestBootRecord_protectedMachine(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		for protected, want := range map[bool]bootiso.Action{false: bootiso.Restart, true: bootiso.None} {
			fake.Set(id, "protected", protected)
			node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			concerned := func(w *bootiso.Want) { w.HostContent = map[string]string{"nmstate": "uid/1"} }
			if status := bootAction(node, "2", concerned); status.Action != want {
				t.Errorf("protected %v: %+v", protected, status)
			}
		}
	})
}

func TestBootRecord_writesNothingElse(t *testing.T) {
	t.Parallel()
	for name, byHand := range map[string][]string{"baseline": nil, "restarted by hand": {"host.nmstate"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instanceID := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
				fake.Set(id, "extra", map[string]any{"rack": "7"})
				before := ironictest.NodeOf(t, fake, id)
				node, err := sitetest.NewClient(fake).RecordBoot(t.Context(), id, sitetest.Live("2"), byHand)
				if err != nil {
					t.Fatal(err)
				}
				record := deploy.BootRecord(node)
				if record == nil || record.Boots != 1 || record.Manual != (byHand != nil) || time.Since(record.At) > time.Minute {
					t.Fatalf("the record is %+v", record)
				}
				if status := bootAction(node, "2"); status.Stale != record.Manual || !slices.Equal(status.Obsolete, byHand) {
					t.Errorf("decided %+v", status)
				}
				if !sitetest.Live("2").DeployedWith(node) || !deploy.RunsInstance(node) {
					t.Error("the next run would boot it")
				}
				after := ironictest.NodeOf(t, fake, id)
				if after.ProvisionState != "active" || after.InstanceUUID != instanceID || fake.PowerCycles(id) != 1 ||
					len(ironictest.Verbs(t, fake, id)) > 0 ||
					before.Raw["provision_updated_at"] != after.Raw["provision_updated_at"] {
					t.Errorf("the node is %s after %d starts", after.ProvisionState, fake.PowerCycles(id))
				}
				if extra, _ := after.Raw["extra"].(map[string]any); extra["rack"] != "7" {
					t.Errorf("extra is %v", extra)
				}
			})
		})
	}
}

func TestBootRecord_restarted(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		info map[string]any
		want bool
	}{
		"nothing yet":                 {map[string]any{}, false},
		"nothing readable":            {map[string]any{"last_power_state_change": "yesterday", "agent_last_heartbeat": 7.0}, false},
		"power changed before":        {map[string]any{"last_power_state_change": "2026-11-20T11:59:59.999999"}, false},
		"power changed after":         {map[string]any{"last_power_state_change": "2026-11-20T12:00:01.000001"}, true},
		"power changed, whole second": {map[string]any{"last_power_state_change": "2026-11-20T12:00:01"}, true},
		"in UTC, said so":             {map[string]any{"last_power_state_change": "2026-11-20T12:00:01Z"}, true},
		"an agent reported before":    {map[string]any{"agent_last_heartbeat": "2026-11-20T11:00:00.1"}, false},
		"an agent reported after":     {map[string]any{"agent_last_heartbeat": "2026-11-20T12:05:00.1"}, true},
		"power before, and agent after": {map[string]any{
			"last_power_state_change": "2026-11-20T11:00:00.0",
			"agent_last_heartbeat":    "2026-11-20T12:05:00.0",
		}, true},
		"while the record was written": {map[string]any{"last_power_state_change": "2026-11-20T12:00:00.999999"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := deploy.RestartedSince(&ironic.Node{DriverInternalInfo: tc.info}, since); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBootRecord_seesRestartByHand(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		client := sitetest.NewClient(fake)
		node, err := client.RecordBoot(t.Context(), id, sitetest.Live("2"), []string{"image"})
		if err != nil {
			t.Fatal(err)
		}
		at := deploy.BootRecord(node).At
		if deploy.RestartedSince(node, at) {
			t.Error("Ironic saw a restart that did not happen")
		}
		<-time.After(time.Minute)
		ironictest.AsOther(t, fake, "PUT", "nodes/"+id+"/states/power", map[string]any{"target": "rebooting"})
		if node, err = client.Ironic.Node(t.Context(), id); err != nil || !deploy.RestartedSince(node, at) {
			t.Errorf("not restarted: %v, %v", node.DriverInternalInfo, err)
		}
	})
}

// TestBootRecord_survivesRescue compares a machine with what it was booted with while it is in rescue mode: it runs that again afterwards.
func TestBootRecord_survivesRescue(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
		for _, body := range []map[string]any{{"target": "rescue", "rescue_password": "secret"}, {"target": "unrescue"}} {
			ironictest.AsOther(t, fake, "PUT", "nodes/"+id+"/states/provision", body)
			for range 5 {
				node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				wait := bootiso.Restart
				if node.ProvisionState != "active" {
					wait = bootiso.Wait
				}
				concerned := func(w *bootiso.Want) { w.HostContent = map[string]string{"nmstate": "uid/1"} }
				if status := bootAction(node, "1"); deploy.BootRecord(node) == nil || status.Stale || status.Action != bootiso.None {
					t.Errorf("%s: what it runs is %+v", node.ProvisionState, status)
				}
				if status := bootAction(node, "2", concerned); status.Action != wait {
					t.Errorf("%s: another image asks for %+v", node.ProvisionState, status)
				}
				<-time.After(2 * time.Minute)
			}
		}
		wantBooted(t, fake, id, "1", fake.PowerCycles(id))
	})
}

// TestBootRecord_knowsSinceWhenAnImageIsWanted boots a machine with an image that was wanted before the machine got content of its own.
func TestBootRecord_knowsSinceWhenAnImageIsWanted(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"1.82", "1.115"} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, instanceID := sitetest.Booted(t, api, sitetest.OverNetwork)
			client := sitetest.NewClient(fake)
			late := func(w *bootiso.Want) { w.HostContent = map[string]string{"nmstate": "uid/1"} }
			for range 2 { // the second call writes nothing
				m, err := client.Machine(t.Context(), id)
				if err == nil {
					err = deploy.NoteWanted(t.Context(), m, sitetest.Live("2").LiveISO.Artifacts)
				}
				if err != nil {
					t.Fatal(err)
				}
				if status := bootAction(m.Node(), "2", late); status.Action != bootiso.Wait {
					t.Errorf("%s: content that is younger than the image asks for %+v", api, status)
				}
			}
			if n := ironictest.Count(fake, "PATCH", "/v1/nodes/"+id); n != 1 {
				t.Errorf("%s: %d patches", api, n)
			}
			d := sitetest.Live("2")
			d.LiveISO.HostContent = map[string]string{"nmstate": "uid/1"}
			node, _, err := client.BootISO(t.Context(), id, d, sitetest.Another(instanceID))
			if err != nil {
				t.Fatal(err)
			}
			if status := bootAction(node, "2", late); status.Action != bootiso.Wait {
				t.Errorf("%s: the booted image counts as having it: %+v", api, status)
			}
			if status := bootAction(node, "3", late); status.Action != bootiso.Restart {
				t.Errorf("%s: the next image asks for %+v", api, status)
			}
		})
	}
}

// An apply asks again, with the node as it is then: it neither restarts a machine that nothing may restart any more, nor one that another
// run has restarted.
func TestCheckISO_asTheNodeIsNow(t *testing.T) {
	t.Parallel()
	const protected, unreserved = "has changed since the plan: it is protected", `has changed since the plan: it is in state "available"`
	boot := func(t *testing.T, fake *fakeironic.Server, id, instance, version string) {
		t.Helper()
		if _, _, err := sitetest.NewClient(fake).BootISO(t.Context(), id, sitetest.Live(version), sitetest.Another(instance)); err != nil {
			t.Fatal(err)
		}
	}
	undeploy := func(t *testing.T, fake *fakeironic.Server, id string) {
		t.Helper()
		ironictest.AsOther(t, fake, "PUT", "nodes/"+id+"/states/provision", map[string]any{"target": "deleted"})
		<-time.After(time.Hour)
	}
	nothing := func(*testing.T, *fakeironic.Server, string, string) {}
	for name, tt := range map[string]struct {
		happened func(t *testing.T, fake *fakeironic.Server, id, instance string)
		do       deploy.Kind
		want     string
	}{
		"nothing": {nothing, deploy.DoBoot, ""},
		"it is protected": {func(_ *testing.T, f *fakeironic.Server, id, _ string) {
			f.Set(id, "protected", true)
		}, deploy.DoBoot, protected},
		"it runs what is new": {func(t *testing.T, f *fakeironic.Server, id, instance string) {
			boot(t, f, id, instance, "2")
		}, deploy.DoBoot, ""},
		"it runs another one": {func(t *testing.T, f *fakeironic.Server, id, instance string) {
			boot(t, f, id, instance, "3")
		}, deploy.DoBoot, ""},
		"it is undeployed": {func(t *testing.T, f *fakeironic.Server, id, _ string) {
			undeploy(t, f, id)
		}, deploy.DoBoot, unreserved},
		"its power can be switched": {nothing, deploy.DoAsk, `has changed since the plan: reboot_policy is "always"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Booted(t, "1.115", sitetest.OverNetwork)
				tt.happened(t, fake, id, instance)
				node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				what := sitetest.Live("2")
				always(what.LiveISO)
				err = deploy.Step{Do: tt.do}.CheckISO(what, node, time.Now())
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want)) {
					t.Errorf("the error is %v, want %q", err, tt.want)
				}
			})
		})
	}
}
