package allocate

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Spread says how a group distributes its members over the domains of a site, such as racks. The zero value distributes nothing.
type Spread struct {
	// what names the domain of a node: extra.KEY, properties.KEY, conductor_group or chassis; KEY may have dots for nested objects
	By  string
	Max int // the largest number of members in a domain; zero: no limit
}

// Domain returns the domain of a node; "" for a node without one, and if By is empty.
func (s Spread) Domain(n *ironic.Node) string {
	root, key, _ := strings.Cut(s.By, ".")
	switch root {
	case "extra":
		return valueAt(n.Extra, key)
	case "properties":
		return valueAt(n.Properties, key)
	case "conductor_group":
		return n.ConductorGroup
	case "chassis":
		return n.ChassisUUID
	}
	return ""
}

// needsAllFields reports whether only a list of nodes with all fields tells the domains.
func (s Spread) needsAllFields() bool {
	return s.By == "chassis" || strings.HasPrefix(s.By, "extra.")
}

// valueAt returns a text, number or boolean of an object as text; "" if there is none.
func valueAt(object map[string]any, key string) string {
	if value, has := object[key]; has {
		text, _ := ironic.Scalar(value)
		return text
	}
	first, rest, nested := strings.Cut(key, ".")
	inner, _ := object[first].(map[string]any)
	if !nested || inner == nil {
		return ""
	}
	return valueAt(inner, rest)
}

// choose returns n of the free nodes, or fewer if Max allows no more. It takes each from the domain that has the fewest members, and
// of several such domains from the one with the most free nodes. used counts the members that the group has already.
func (s Spread) choose(free []*ironic.Node, used map[string]int, n int) (chosen []*ironic.Node) {
	free = slices.Clone(free)
	rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	left := map[string][]*ironic.Node{}
	for _, node := range free {
		left[s.Domain(node)] = append(left[s.Domain(node)], node)
	}
	members := maps.Clone(used)
	if members == nil {
		members = map[string]int{}
	}
	for len(chosen) < n {
		maps.DeleteFunc(left, func(domain string, nodes []*ironic.Node) bool {
			return len(nodes) == 0 || s.Max > 0 && members[domain] >= s.Max
		})
		if len(left) == 0 {
			break
		}
		domain := slices.MinFunc(slices.Sorted(maps.Keys(left)), func(a, b string) int {
			return cmp.Or(cmp.Compare(members[a], members[b]), cmp.Compare(len(left[b]), len(left[a])))
		})
		chosen = append(chosen, left[domain][0])
		left[domain] = left[domain][1:]
		members[domain]++
	}
	return chosen
}

func (s Spread) mostMembers(all []*ironic.Node) (most int, domains map[string]int) {
	domains = map[string]int{}
	for _, node := range all {
		domains[s.Domain(node)]++
	}
	for _, nodes := range domains {
		if s.Max > 0 {
			nodes = min(nodes, s.Max)
		}
		most += nodes
	}
	return most, domains
}
