package datasources_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestFakeCapacityDataSource_countsHosts(t *testing.T) {
	s := site.StartFake(t, nil)
	s.Fake.AddFleet(6, "gold")
	s.Fake.AddFleet(1, "silver")
	for name, fields := range map[string][]struct {
		name  string
		value any
	}{ // the order matters, because setting a state sets its time
		"node-000": {{"provision_state", "deploying"}, {"provision_updated_at", time.Now().UTC().Format(time.RFC3339)}},
		"node-001": {{"provision_state", "clean wait"}, {"provision_updated_at", "2026-01-01T00:00:00Z"}}, // stuck

		"node-002": {{"provision_state", "cleaning"}, {"boot_interface", "redfish-virtual-media"}},
		"node-003": {{"provision_state", "clean failed"}},
		"node-004": {{"maintenance", true}},
	} {
		for _, field := range fields {
			s.Fake.Set(name, field.name, field.value)
		}
	}
	const address = "data.metal_capacity.c"
	n := knownvalue.Int64Exact
	class := func(total, available, allocated, maintenance, failed int64) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{
			"total": n(total), "available": n(available), "allocated": n(allocated), "in_maintenance": n(maintenance), "failed": n(failed),
			"not_qualified": null,
		})
	}
	for limit, counted := range map[string]struct{ busy, exempt int64 }{
		`max_concurrent = 7`: {2, 0}, // by default every machine counts
		`max_concurrent = 7, exempt_boot_interfaces = ["*virtual-media"]`: {1, 1},
	} {
		t.Run(limit, func(t *testing.T) {
			test(t, s.Provider("provisioning_limit = { "+limit+" }")+data("metal_capacity", "c"), "",
				is(address, "max_concurrent", n(7)), is(address, "busy", n(counted.busy)), is(address, "own", n(0)),
				is(address, "others", n(counted.busy)),
				is(address, "stuck", n(1)), is(address, "exempt", n(counted.exempt)),
				is(address, "classes", knownvalue.MapExact(map[string]knownvalue.Check{
					"gold":   class(6, 1, 1, 1, 1),
					"silver": class(1, 1, 0, 0, 0),
				})),
			)
		})
	}
}

// Of the free hosts of a class, those count as not qualified that have not passed within the time.
func TestFakeCapacityDataSource_countsNotQualified(t *testing.T) {
	s := site.StartFake(t, nil)
	s.Fake.AddFleet(5, "gold")
	passed := func(ago time.Duration) map[string]any {
		return map[string]any{notes.KeyQualification: map[string]any{
			"passed": time.Now().Add(-ago).UTC().Format(time.RFC3339), "inspected": "2026-11-01T01:00:00Z",
		}}
	}
	for name, ago := range map[string]time.Duration{"node-000": time.Hour, "node-001": 50 * time.Hour, "node-002": time.Hour} {
		s.Fake.Set(name, "inspection_finished_at", "2026-11-01T01:00:00+00:00")
		s.Fake.Set(name, "extra", passed(ago))
	}
	s.Fake.Set("node-002", "inspection_finished_at", "2026-11-02T01:00:00+00:00") // only the inventory tells
	s.Fake.Set("node-003", "maintenance", true)
	test(t, s.Provider()+data("metal_capacity", "c", `qualified_within = "2d"`), "",
		is("data.metal_capacity.c", "classes", knownvalue.MapExact(map[string]knownvalue.Check{
			"gold": knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"available": knownvalue.Int64Exact(4), "not_qualified": knownvalue.Int64Exact(2),
			}),
		})))
}
