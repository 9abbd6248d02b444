package simulate_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// reserveTheme is about reservations, deployments that fail, quarantine, and other clients that work on reserved nodes.
func reserveTheme() theme {
	return theme{name: "reservations", begin: func(l *tale) {
		for _, name := range []string{"a", "b", "c"} {
			l.config["metal_host."+name] = object{
				"name": name, "driver": "fake-hardware", "resource_class": "baremetal",
				"target_state": "available",
			}
		}
		l.apply()
		l.config["metal_allocation.a"] = object{"name": "a", "resource_class": "baremetal"}
		l.apply()
	}, moves: []move{
		deployReserved, deployReserved, deployReserved, undeployFrom, releaseReservation, reserveNode, manageByOther,
		redeployByOther, failDeployments, failDeployments, failDeployments, changeDeployment, renameHost,
	}}
}

func deployReserved(l *tale) string {
	if l.config["metal_allocation.a"] == nil || len(l.deployments()) > 0 {
		return ""
	}
	l.config["metal_deployment.a"] = object{
		"node_id": reference{"metal_allocation.a", "node_id"}, "allocation_id": reference{"metal_allocation.a", "id"},
		"image":      imageAt("http://images.test/v1"),
		"on_failure": l.one("quarantine", "quarantine", nil),
	}
	return "deploy on the reserved node"
}

func releaseReservation(l *tale) string {
	if l.config["metal_allocation.a"] == nil {
		return ""
	}
	delete(l.config, "metal_allocation.a")
	delete(l.config, "metal_deployment.a")
	return "remove the allocation"
}

func reserveNode(l *tale) string {
	if l.config["metal_allocation.a"] != nil {
		return ""
	}
	l.config["metal_allocation.a"] = object{"name": "a", "resource_class": "baremetal", "on_unusable": l.one("keep", "replace", nil)}
	return "add the allocation"
}

// reserved returns the node that the allocation has reserved.
func (l *tale) reserved() (fakeironic.Node, bool) {
	return l.fake.Node(l.space.text("metal_allocation.a", "node_id"))
}

// manageByOther lets another client make a reserved node manageable, or available again.
func manageByOther(l *tale) string {
	n, exists := l.reserved()
	if !exists || l.space.state()["metal_deployment.a"] != nil {
		return ""
	}
	target := "manage"
	if n.ProvisionState == "manageable" {
		target = "provide"
	}
	status, _ := l.call(l.t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": target})
	l.pause(4)
	l.surprised = true
	return fmt.Sprintf("another client sends %s to %s: %d", target, n.Name, status)
}

// failDeployments lets the next deployment fail, and kills the run while it quarantines the node.
func failDeployments(l *tale) string {
	if l.config["metal_allocation.a"] == nil || l.space.state()["metal_deployment.a"] != nil {
		return ""
	}
	retired := 0
	for _, n := range l.fake.Nodes() {
		if n.Raw["retired"] == true {
			retired++
		}
	}
	if retired > 1 { // a deployment needs a node
		return ""
	}
	deployReserved(l)
	l.surprised = true
	l.fake.Fail = func(n fakeironic.Node, verb string) string {
		if verb == "active" {
			return "The disk is broken."
		}
		return ""
	}
	d := trouble{kill: 1 + l.below(25), after: l.below(2) == 0}
	if l.below(3) > 0 {
		d = trouble{at: "deleted"}
	}
	end := l.run(l.t, l.config, d)
	l.fake.Fail = nil
	said := fmt.Sprintf("the deployment fails, killed: %t", end.killed)
	if l.below(2) == 0 {
		said += ", " + redeployByOther(l)
	}
	if l.below(2) == 0 {
		said += ", " + releaseReservation(l)
	}
	return said
}

// redeployByOther lets another client deploy again on a node on which a deployment has failed.
func redeployByOther(l *tale) string {
	for _, n := range l.fake.Nodes() {
		if n.ProvisionState != "deploy failed" {
			continue
		}
		status, _ := l.call(l.t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "active"})
		l.pause(4)
		l.surprised = true
		return fmt.Sprintf("another client deploys again on %s: %d", n.Name, status)
	}
	return ""
}

// freeMachines lets the operator undeploy machines that no state knows and that no deployment of the configuration would take over: a
// killed run, or another client, has deployed them.
func (l *tale) freeMachines(config configuration) {
	l.endQuarantines(config)
	deployed := map[string]bool{}
	for _, address := range slices.Sorted(maps.Keys(l.space.state())) {
		if kindName(address) == "metal_deployment" {
			deployed[l.space.text(address, "id")] = true
		}
	}
	for address := range config {
		if kindName(address) == "metal_deployment" {
			return
		}
	}
	for _, n := range l.fake.Nodes() {
		if deployed[n.UUID] || !slices.Contains([]string{"active", "deploying", "error"}, n.ProvisionState) {
			continue
		}
		status, _ := l.call(l.t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "deleted"})
		l.pause(4)
		l.tell("the operator undeploys %s, which was in state %s: %d", n.Name, n.ProvisionState, status)
	}
}

// endQuarantines lets the operator repair all machines if none is left for the allocation of the configuration.
func (l *tale) endQuarantines(config configuration) {
	usable := func(n fakeironic.Node) bool { return n.Raw["retired"] != true }
	if config["metal_allocation.a"] == nil || slices.ContainsFunc(l.fake.Nodes(), usable) {
		return
	}
	for _, n := range l.fake.Nodes() {
		status, _ := l.call(l.t, http.MethodPatch, "nodes/"+n.UUID, []object{{"op": "add", "path": "/retired", "value": false}})
		l.tell("the operator repairs %s and ends its quarantine: %d", n.Name, status)
	}
}

// operateByOther lets another client change a record of Ironic.
func operateByOther(l *tale) string {
	nodes := l.fake.Nodes()
	if len(nodes) == 0 {
		return ""
	}
	n := nodes[l.below(len(nodes))]
	what, patch := "renames", []object{{"op": "add", "path": "/name", "value": l.next("theirs")}}
	switch l.below(4) {
	case 0:
		what, patch = "retires", []object{{"op": "add", "path": "/retired", "value": true}}
	case 1:
		if n.InstanceUUID != "" || n.ProvisionState != "available" {
			return ""
		}
		what, patch = "reserves", []object{{"op": "add", "path": "/instance_uuid", "value": "00000000-0000-4000-8000-0000000000ff"}}
	case 2:
		what, patch = "puts into maintenance", []object{{"op": "add", "path": "/maintenance", "value": true}}
	}
	status, _ := l.call(l.t, http.MethodPatch, "nodes/"+n.UUID, patch)
	l.surprised, l.meddled = true, true
	return fmt.Sprintf("another client %s %s: %d", what, n.Name, status)
}

// tidy lets other clients end what they have done.
func (l *tale) tidy() {
	for _, n := range l.fake.Nodes() {
		if n.InstanceUUID == "00000000-0000-4000-8000-0000000000ff" {
			l.call(l.t, http.MethodPatch, "nodes/"+n.UUID, []object{{"op": "remove", "path": "/instance_uuid"}})
		}
		if n.Maintenance {
			l.call(l.t, http.MethodDelete, "nodes/"+n.UUID+"/maintenance", nil)
		}
		if n.Raw["retired"] == true && n.Raw["retired_reason"] == nil {
			l.call(l.t, http.MethodPatch, "nodes/"+n.UUID, []object{{"op": "add", "path": "/retired", "value": false}})
		}
	}
}
