package simulate_test

import (
	"fmt"
	"net/http"
	"strings"
)

const racks = 3

// groupTheme is about groups of allocations over hosts of the same configuration.
func groupTheme() theme {
	return theme{name: "groups", begin: func(l *tale) {
		for i := range 5 {
			name := fmt.Sprintf("h%d", i)
			l.config["metal_host."+name] = object{
				"name": name, "driver": "fake-hardware", "resource_class": "baremetal", "target_state": "available",
				"automated_clean": false,
				"extra":           object{"rack": fmt.Sprintf("r%d", i%racks)},
			}
		}
		l.apply()
		l.config["metal_allocation_group.g"] = object{"name": "g", "resource_class": "baremetal", "size": 1 + l.below(3)}
		l.apply()
	}, moves: []move{
		resizeGroup, resizeGroup, renameGroup, spreadGroup, spreadGroup, renameHost, renameAndSpread, renameAndSpread,
		loseMember, deployGroup, changeCandidates, growHosts, moveMember, moveMember,
	}}
}

func (l *tale) group() object { return l.config["metal_allocation_group.g"] }

func resizeGroup(l *tale) string {
	size := 1 + l.below(4)
	if size == l.group()["size"] {
		return ""
	}
	l.group()["size"] = size
	for _, address := range l.deployments() { // those of members that go
		delete(l.config, address)
	}
	return fmt.Sprintf("the group has %d members", size)
}

func renameGroup(l *tale) string {
	l.group()["name"] = l.next("g")
	return fmt.Sprintf("the group is called %s", l.group()["name"])
}

func spreadGroup(l *tale) string {
	if l.group()["spread_by"] != nil {
		delete(l.group(), "spread_by")
		return "the group is not spread"
	}
	l.group()["spread_by"] = "extra.rack"
	return "the group is spread over racks"
}

// renameAndSpread renames all hosts of a group that is spread, or no longer.
func renameAndSpread(l *tale) string {
	for _, address := range l.hosts() {
		l.config[address]["name"] = l.next("renamed")
	}
	return "all hosts have other names, and " + spreadGroup(l)
}

// loseMember lets another client delete an allocation of the group on which nothing runs.
func loseMember(l *tale) string {
	if len(l.deployments()) > 0 {
		return ""
	}
	name := fmt.Sprintf("%s-0", l.space.text("metal_allocation_group.g", "name"))
	status, _ := l.call(l.t, http.MethodDelete, "allocations/"+name, nil)
	l.surprised = true
	return fmt.Sprintf("another client deletes the allocation %s: %d", name, status)
}

// deployGroup deploys on the first member.
func deployGroup(l *tale) string {
	i := l.space.state()["metal_allocation_group.g"]
	if i == nil || len(l.deployments()) > 0 {
		return ""
	}
	key := ""
	for at := range i.value.GetAttr("members").AsValueMap() {
		if strings.HasSuffix(at, "-0") {
			key = at
		}
	}
	member := func(attribute string) pick {
		return pick{reference{"metal_allocation_group.g", "members"}, []any{key, attribute}}
	}
	l.config["metal_deployment.g"] = object{
		"node_id": member("node_id"), "allocation_id": member("id"), "image": imageAt("http://images.test/v1"),
	}
	return "deploy on the first member"
}

// moveMember moves the first member to another node.
func moveMember(l *tale) string {
	i := l.space.state()["metal_allocation_group.g"]
	if i == nil {
		return ""
	}
	for at := range i.value.GetAttr("members").AsValueMap() {
		if strings.HasSuffix(at, "-0") {
			l.group()["replace_members"] = object{at: l.next("value")}
		}
	}
	return "the first member moves to another node"
}

// changeCandidates lets the group select from a list of nodes.
func changeCandidates(l *tale) string {
	var all []any
	for _, address := range l.hosts() {
		if l.below(4) > 0 {
			all = append(all, reference{address, "id"})
		}
	}
	l.group()["candidate_nodes"] = all
	return fmt.Sprintf("the group selects from %v", all)
}

// growHosts adds a host, so that lists of nodes change.
func growHosts(l *tale) string {
	name := l.next("new")
	l.config["metal_host."+name] = object{
		"name": name, "driver": "fake-hardware", "resource_class": "baremetal", "target_state": "available", "automated_clean": false,
		"extra": object{"rack": "r0"},
	}
	return "add host " + name
}
