package datasources_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The record of a cleaning is the note on the node. Its disks are those of the inventory, without those that the agent skips.
func TestFakeHostDataSource_lastErasure(t *testing.T) {
	s := site.StartFake(t, nil)
	skip := func(hint map[string]any) map[string]any {
		return map[string]any{"skip_block_devices": []any{hint}}
	}
	note := map[string]any{"terraform_metal_erasure": map[string]any{
		"run": "r", "steps": []any{"deploy.erase_devices"}, "began": "2026-11-26T01:00:00.5Z", "ended": "2026-11-26T03:00:00Z",
	}}
	inventory := map[string]any{"disks": []any{
		map[string]any{"name": "/dev/sda", "serial": "A"},
		map[string]any{"name": "/dev/sdb", "serial": "B"},
	}}
	for name, hint := range map[string]map[string]any{"skips": {"serial": "a"}, "compares": {"size": "> 100"}} {
		id := addNode(t, s, name, nil)
		s.Fake.Set(id, "properties", skip(hint))
		s.Fake.Set(id, "extra", note)
		s.Fake.Set(id, "created_at", "2026-11-01T00:00:00+00:00")
		s.Fake.Set(id, "provision_updated_at", "2026-11-26T03:00:00+00:00")
		s.Fake.SetInventory(id, inventory, map[string]any{})
	}
	never := addNode(t, s, "never", nil)
	s.Verb(never, "manage", "manageable")
	s.Verb(never, "provide", "available")

	erasure := func(disks knownvalue.Check) knownvalue.Check {
		return object(map[string]knownvalue.Check{
			"steps": texts("deploy.erase_devices"), "began_at": text("2026-11-26T01:00:00Z"), "ended_at": text("2026-11-26T03:00:00Z"),
			"result": text("succeeded"), "run": text("r"), "disks": disks,
		})
	}
	named := func(name string) string { return data("metal_host", name, "name = "+acctest.Quoted(s.Name(name))) }
	test(t, s.Provider()+named("skips")+named("compares")+including(s, "never", "never", `"cleaning_history"`), "",
		is("data.metal_host.skips", "last_erasure", erasure(texts("B"))), is("data.metal_host.compares", "last_erasure", erasure(null)),
		is("data.metal_host.skips", "cleaning_history", null), is("data.metal_host.never", "last_erasure", null),
		is("data.metal_host.never", "cleaning_history",
			knownvalue.ListPartial(map[int]knownvalue.Check{0: knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"kind": text("automated"), "failed": no, "event": text("Automated Cleaning completed successfully with steps=[]"),
			})})))
}
