package ironic_test

import (
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// wanted is a live ISO of a version, settled.
func wanted(version string) ironic.WantedBoot {
	return ironic.WantedBoot{Artifacts: *live(version).LiveISO, Registered: true, Settled: true}
}

func TestNobodyKnowsWhatAMachineWasBootedWith(t *testing.T) {
	t.Parallel()
	for name, happened := range map[string]func(t *testing.T, fake *fakeironic.Server, id string){
		"without a record": func(_ *testing.T, fake *fakeironic.Server, id string) { fake.Set(id, "extra", map[string]any{}) },
		"with another's": func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "extra", map[string]any{"terraform_metal_boot": "yesterday"})
		},
		"when it was deployed by somebody else": func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "instance_info", map[string]any{"boot_iso": "http://images/theirs.iso", "deploy_interface": "ramdisk"})
		},
		"when it has an image now": func(_ *testing.T, fake *fakeironic.Server, id string) {
			fake.Set(id, "instance_info", map[string]any{"image_source": "http://images/theirs.qcow2"})
		},
		"while it is deployed": func(t *testing.T, fake *fakeironic.Server, id string) {
			t.Helper()
			rest(t, fake, "PUT", "nodes/"+id+"/states/provision", map[string]any{"target": "rebuild"})
		},
		"after it was undeployed": func(t *testing.T, fake *fakeironic.Server, id string) {
			t.Helper()
			rest(t, fake, "PUT", "nodes/"+id+"/states/provision", map[string]any{"target": "deleted"})
			<-time.After(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake, id, _ := booted(t, "1.82", overNetwork)
				happened(t, fake, id)
				node, err := newClient(fake).Node(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if record := ironic.BootRecord(node); record != nil {
					t.Errorf("the record is %+v", record)
				}
				status := ironic.BootFactsOf(node).Judge(wanted("2"))
				if status.Action != bootiso.None || !slices.Equal(status.Obsolete, []string{bootiso.ObsoleteUnknown}) {
					t.Errorf("judged %+v", status)
				}
			})
		})
	}
}

func TestAMachineThatIsRestartedByHandKeepsItsRecord(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, id, _ := booted(t, "1.115", fromMedia)
		rest(t, fake, "PUT", "nodes/"+id+"/states/power", map[string]any{"target": "rebooting"})
		<-time.After(time.Hour)
		wantBooted(t, fake, id, "1", 2)
	})
}

func TestAProtectedMachineIsExempt(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, id, _ := booted(t, "1.115", overNetwork)
		for protected, want := range map[bool]bootiso.Action{false: bootiso.Reboot, true: bootiso.None} {
			fake.Set(id, "protected", protected)
			node, err := newClient(fake).Node(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			want2 := wanted("2")
			want2.Own = map[string]string{"nmstate": "uid/1"}
			if status := ironic.BootFactsOf(node).Judge(want2); status.Action != want {
				t.Errorf("protected %v: %+v", protected, status)
			}
		}
	})
}

func TestRecordBootTouchesNothingElse(t *testing.T) {
	t.Parallel()
	for name, manual := range map[string]bool{"baseline": false, "restarted by hand": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake, id, instance := booted(t, "1.115", overNetwork)
				fake.Set(id, "extra", map[string]any{"rack": "7"})
				before := nodeOf(t, fake, id)
				node, err := newClient(fake).RecordBoot(t.Context(), id, live("2"), manual)
				if err != nil {
					t.Fatal(err)
				}
				record := ironic.BootRecord(node)
				if record == nil || record.Boots != 1 || record.Manual != manual || time.Since(record.At) > time.Minute {
					t.Fatalf("the record is %+v", record)
				}
				if status := ironic.BootFactsOf(node).Judge(wanted("2")); status.Stale || len(status.Obsolete) > 0 {
					t.Errorf("judged %+v", status)
				}
				if !live("2").DeployedWith(node) || !ironic.RunsInstance(node) {
					t.Error("the next run would boot it")
				}
				after := nodeOf(t, fake, id)
				if after.ProvisionState != "active" || after.InstanceUUID != instance || fake.PowerCycles(id) != 1 || len(verbs(t, fake, id)) > 0 ||
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

func TestRestartedSeesWhatIronicSees(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		info map[string]any
		want bool
	}{
		"nothing yet":                   {map[string]any{}, false},
		"nothing readable":              {map[string]any{"last_power_state_change": "yesterday", "agent_last_heartbeat": 7.0}, false},
		"power changed before":          {map[string]any{"last_power_state_change": "2026-11-20T11:59:59.999999"}, false},
		"power changed after":           {map[string]any{"last_power_state_change": "2026-11-20T12:00:01.000001"}, true},
		"power changed, whole second":   {map[string]any{"last_power_state_change": "2026-11-20T12:00:01"}, true},
		"in UTC, said so":               {map[string]any{"last_power_state_change": "2026-11-20T12:00:01Z"}, true},
		"an agent reported before":      {map[string]any{"agent_last_heartbeat": "2026-11-20T11:00:00.1"}, false},
		"an agent reported after":       {map[string]any{"agent_last_heartbeat": "2026-11-20T12:05:00.1"}, true},
		"power before, and agent after": {map[string]any{"last_power_state_change": "2026-11-20T11:00:00.0", "agent_last_heartbeat": "2026-11-20T12:05:00.0"}, true},
		"while the record was written":  {map[string]any{"last_power_state_change": "2026-11-20T12:00:00.999999"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ironic.Restarted(&ironic.Node{DriverInternalInfo: tc.info}, since); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestARestartByHandIsSeen(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake, id, _ := booted(t, "1.115", overNetwork)
		client := newClient(fake)
		node, err := client.RecordBoot(t.Context(), id, live("2"), true)
		if err != nil {
			t.Fatal(err)
		}
		at := ironic.BootRecord(node).At
		if ironic.Restarted(node, at) {
			t.Error("restarted, and nobody did that")
		}
		<-time.After(time.Minute)
		rest(t, fake, "PUT", "nodes/"+id+"/states/power", map[string]any{"target": "rebooting"})
		if node, err = client.Node(t.Context(), id); err != nil || !ironic.Restarted(node, at) {
			t.Errorf("not restarted: %v, %v", node.DriverInternalInfo, err)
		}
	})
}
