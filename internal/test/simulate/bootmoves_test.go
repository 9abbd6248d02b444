package simulate_test

import (
	"fmt"
	"net/http"
)

// bootTheme is about machines that run from live ISOs or images, with VIFs and rescue mode, while other clients work on them, too.
func bootTheme() theme {
	return theme{name: "live ISO, VIFs and rescue", begin: func(l *tale) {
		l.config = booted("v1", "n1")
		l.iso()["shared_content"] = object{"proxy": "p1"}
		if l.below(3) == 0 {
			l.config = installed("v1")
		}
		if l.below(3) > 0 {
			host := l.config["metal_host.a"]
			host["hardware_interfaces"].(object)["network"] = "flat"
			l.config["metal_deployment.a"]["vifs"] = []any{vifOf(1)}
		}
		if l.below(2) == 0 { // without virtual media
			host := l.config["metal_host.a"]
			host["bmc"] = bmcAt("redfish", "a")
			host["hardware_interfaces"].(object)["boot"] = "ipxe"
		}
		if l.below(3) == 0 {
			l.allocate()
		}
		l.apply()
	}, moves: []move{
		newISO, newISO, newISO, newISO, changeShared, changeRescue, changeRescue, changeRescue, changeVIFs, changeProtection,
		changeDeployment, changeDeployment, changeReady, changeReady, rescueByOther,
	}}
}

func vifOf(n int) object { return object{"id": fmt.Sprintf("00000000-0000-4000-8000-%012d", n)} }

// iso returns the live ISO of the machine; nil if an image is installed.
func (l *tale) iso() object {
	iso, _ := l.config["metal_deployment.a"]["live_iso"].(object)
	return iso
}

// allocate lets an allocation reserve the machine.
func (l *tale) allocate() {
	l.config["metal_allocation.a"] = object{
		"name": "a", "resource_class": "baremetal",
		"candidate_nodes": []any{reference{"metal_host.a", "id"}},
	}
	l.config["metal_deployment.a"]["node_id"] = reference{"metal_allocation.a", "node_id"}
	l.config["metal_deployment.a"]["allocation_id"] = reference{"metal_allocation.a", "id"}
}

// newISO builds another image, with or without other content for the machine and for all.
func newISO(l *tale) string {
	iso := l.iso()
	if iso == nil {
		return ""
	}
	iso["url"] = "http://images.test/" + l.next("v") + ".iso"
	host, shared := l.below(2) == 0, l.below(2) == 0
	if host {
		iso["host_content"] = object{"network": l.next("n")}
	}
	if shared {
		iso["shared_content"] = object{"proxy": l.next("p")}
	}
	iso["reboot_policy"] = l.one("affected", "affected", "always", nil)
	return fmt.Sprintf("another live ISO %s, host content: %t, shared content: %t, policy %v", iso["url"], host, shared,
		iso["reboot_policy"])
}

func changeShared(l *tale) string {
	iso := l.iso()
	if iso == nil {
		return ""
	}
	iso["shared_content"] = object{"proxy": l.next("p")}
	return "other shared content"
}

func changeRescue(l *tale) string {
	deployment := l.config["metal_deployment.a"]
	rescue, _ := deployment["rescue"].(object)
	switch {
	case rescue == nil:
		deployment["rescue"] = object{"password_wo": secret, "password_wo_version": "1"}
		return "rescue the machine"
	case l.below(3) == 0:
		rescue["password_wo_version"] = l.next("v")
		return "another rescue password"
	}
	delete(deployment, "rescue")
	return "end the rescue"
}

func changeVIFs(l *tale) string {
	deployment := l.config["metal_deployment.a"]
	if deployment["vifs"] == nil {
		return ""
	}
	l.names++
	deployment["vifs"] = []any{vifOf(l.names)}
	return "another VIF"
}

func changeProtection(l *tale) string {
	deployment := l.config["metal_deployment.a"]
	protected, _ := deployment["protected"].(bool)
	deployment["protected"] = !protected
	return fmt.Sprintf("protected: %t", !protected)
}

// rescueByOther lets another client rescue the machine, or end that.
func rescueByOther(l *tale) string {
	n, exists := l.fake.Node(l.space.text("metal_host.a", "id"))
	if !exists || n.ProvisionState != "active" || l.config["metal_deployment.a"]["rescue"] != nil {
		return ""
	}
	l.call(l.t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "rescue", "rescue_password": secret})
	l.pause(6)
	l.surprised = true
	said := "another client rescues the machine"
	if l.below(2) == 0 {
		l.call(l.t, http.MethodPut, "nodes/"+n.UUID+"/states/provision", object{"target": "unrescue"})
		l.pause(4)
		said += ", and ends that"
	}
	return said
}
