package allocate

import (
	"fmt"
	"maps"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestSpread_distributesEvenly(t *testing.T) {
	t.Parallel()
	racks := func(counts map[string]int) (all []*ironic.Node) {
		for rack, n := range counts {
			for i := range n {
				all = append(all, &ironic.Node{UUID: fmt.Sprint(rack, i), ConductorGroup: rack})
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		free, used map[string]int
		max, n     int
		want       map[string]int
	}{
		"evenly":                  {map[string]int{"a": 5, "b": 5}, nil, 0, 4, map[string]int{"a": 2, "b": 2}},
		"one rack is small":       {map[string]int{"a": 5, "b": 1}, nil, 0, 4, map[string]int{"a": 3, "b": 1}},
		"the larger rack first":   {map[string]int{"a": 2, "b": 5}, nil, 0, 3, map[string]int{"a": 1, "b": 2}},
		"existing members":        {map[string]int{"a": 5, "b": 5}, map[string]int{"a": 3}, 0, 3, map[string]int{"b": 3}},
		"at most":                 {map[string]int{"a": 5, "b": 5}, nil, 2, 5, map[string]int{"a": 2, "b": 2}},
		"at most, with existing":  {map[string]int{"a": 5, "b": 5}, map[string]int{"a": 2, "c": 9}, 2, 3, map[string]int{"b": 2}},
		"too few":                 {map[string]int{"a": 1}, nil, 0, 3, map[string]int{"a": 1}},
		"no free nodes":           {nil, nil, 0, 1, map[string]int{}},
		"nodes without a rack":    {map[string]int{"": 3, "a": 1}, nil, 1, 3, map[string]int{"": 1, "a": 1}},
		"no members are required": {map[string]int{"a": 1}, nil, 0, 0, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Spread{By: "conductor_group", Max: tc.max}
			got := map[string]int{}
			for _, node := range s.choose(racks(tc.free), tc.used, tc.n) {
				got[s.Domain(node)]++
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("chose %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSpread_domains(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{
		ConductorGroup: "g", ChassisUUID: "c", Properties: map[string]any{"rack": "r1", "a": map[string]any{"b": map[string]any{"c": 7.0}}},
		Extra: map[string]any{"rack": true, "list": []any{"x"}, "a.b": "dotted"},
	}
	for by, want := range map[string]string{
		"conductor_group": "g", "chassis": "c", "properties.rack": "r1", "properties.a.b.c": "7", "properties.a.b": "",
		"extra.rack": "true",
		"extra.list": "", "extra.none": "", "extra.a.b": "dotted", "": "",
	} {
		if got := (Spread{By: by}).Domain(node); got != want {
			t.Errorf("%q: domain %q, want %q", by, got, want)
		}
	}
}
