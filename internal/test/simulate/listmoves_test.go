package simulate_test

import "fmt"

// listTheme is about nodes that a configuration takes from lists of a data source.
func listTheme() theme {
	return theme{name: "lists", begin: func(l *tale) {
		for _, name := range []string{"a", "b", "c"} {
			l.config["metal_host."+name] = object{
				"name": name, "driver": "fake-hardware", "resource_class": "baremetal",
				"target_state": "available", "automated_clean": false,
			}
		}
		l.apply()
		l.config["data.metal_hosts.free"] = object{"resource_class": "baremetal", "provision_state": "available"}
		l.config["data.metal_hosts.all"] = object{"resource_class": "baremetal"}
	}, moves: []move{
		deployOnListed, deployOnListed, allocateFromList, groupFromList, growHosts, renameHost, undeployFrom,
		changeDeployment,
	}}
}

// deployOnListed deploys on a node of a list.
func deployOnListed(l *tale) string {
	if len(l.deployments()) > 0 || l.config["metal_allocation.a"] != nil || l.group() != nil {
		return ""
	}
	list, _ := l.one("data.metal_hosts.free", "data.metal_hosts.all").(string)
	l.config["metal_deployment.a"] = object{
		"node_id": pick{reference{list, "ids"}, []any{0}}, "image": imageAt("http://images.test/v1"),
	}
	return "deploy on the first node of " + list
}

// allocateFromList reserves a node of a list.
func allocateFromList(l *tale) string {
	if l.config["metal_allocation.a"] != nil {
		delete(l.config, "metal_allocation.a")
		return "remove the allocation"
	}
	if len(l.deployments()) > 0 {
		return ""
	}
	list, _ := l.one("data.metal_hosts.free", "data.metal_hosts.all").(string)
	l.config["metal_allocation.a"] = object{"name": "a", "resource_class": "baremetal", "candidate_nodes": reference{list, "ids"}}
	return "reserve a node of " + list
}

func groupFromList(l *tale) string {
	if l.group() != nil || len(l.deployments()) > 0 {
		return ""
	}
	list, _ := l.one("data.metal_hosts.free", "data.metal_hosts.all").(string)
	l.config["metal_allocation_group.g"] = object{
		"name": "g", "resource_class": "baremetal", "size": 1,
		"candidate_nodes": reference{list, "ids"},
	}
	return fmt.Sprintf("a group of nodes of %s", list)
}
