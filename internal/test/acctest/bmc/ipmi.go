package bmc

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc/ipmi"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// ipmiControllers are the BMCs of StartIPMI by host and port.
var ipmiControllers sync.Map

// StartIPMI lets a BMC of Start speak IPMI too, at a UDP address such as 127.0.0.1:0, until the test ends. Ironic waits between
// two commands to the same IP address, so BMCs are faster at addresses of their own.
func (b *Controller) StartIPMI(address string) *ipmi.Server {
	b.t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(b.t.Context(), "udp", address)
	if err != nil {
		b.t.Skip(err)
	}
	face := &ipmi.Server{Fake: b.Server, BMC: b.BMC}
	b.IPMI = conn.LocalAddr().String()
	ipmiControllers.Store(b.IPMI, b)
	var serving sync.WaitGroup
	ctx := context.WithoutCancel(b.t.Context()) // clean-ups need the BMC
	serving.Go(func() {
		if err := face.Serve(ctx, conn); err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(func() {
		ipmiControllers.Delete(b.IPMI)
		_ = conn.Close()
		serving.Wait()
	})
	return face
}

// IPMIBlock is Block for IPMI.
func (b *Controller) IPMIBlock(settings ...string) string {
	username, password := b.Credentials()
	return Block("ipmi://"+b.IPMI, append([]string{fmt.Sprintf("username = %q", username), fmt.Sprintf("password = %q", password)},
		settings...)...)
}

// IPMINode is Node for IPMI.
func (b *Controller) IPMINode(boot string) map[string]any {
	username, password := b.Credentials()
	host, port, err := net.SplitHostPort(b.IPMI)
	if err != nil {
		b.t.Fatal(err)
	}
	return map[string]any{"driver": "ipmi", "boot_interface": boot, "automated_clean": false, "driver_info": map[string]any{
		"ipmi_address": host, "ipmi_port": port, "ipmi_username": username, "ipmi_password": password,
	}}
}

// ipmiDriver is driver for a node with IPMI. It calls the BMC in this process, as far as its faults let a command through.
func ipmiDriver(node fakeironic.Node, info map[string]any, verb string) string {
	found, _ := ipmiControllers.Load(net.JoinHostPort(site.Text(info["ipmi_address"]), fmt.Sprint(info["ipmi_port"])))
	b, _ := found.(*Controller)
	call := func(name, command string, run func() error) (failure string) {
		failure = "IPMI call failed: " + command + "."
		if b == nil {
			return failure
		}
		if username, password := b.Credentials(); site.Text(info["ipmi_username"]) != username ||
			site.Text(info["ipmi_password"]) != password {
			b.Note(fakebmc.LoginRefused, site.Text(info["ipmi_username"]))
			return failure
		}
		if hit, struck := b.Server.Strike(ipmi.Method, "/ipmi/"+b.Name()+"/"+name); struck && hit.Delay == 0 {
			if hit.Accept {
				return ""
			}
			return failure
		}
		if run() != nil {
			return failure
		}
		return ""
	}
	status := func() string { return call("Get Chassis Status", "power status", func() error { return nil }) }
	control := func(command, kind string) string {
		return call("Chassis Control", "power "+command, func() error { return b.Power(kind) })
	}
	change := func(target, command, kind string) string {
		failure := control(command, kind)
		for end := time.Now().Add(softTime); failure == "" && b.On() != (target == "power on"); <-time.After(100 * time.Millisecond) {
			if time.Now().After(end) {
				failure = fmt.Sprintf("Failed to set node power state to %s.", target)
			}
		}
		if failure != "" {
			failure = fmt.Sprintf("Failed to change power state to '%s' by '%s': %s", target, verb, failure)
		}
		return failure
	}
	switch verb {
	case "manage":
		if failure := status(); failure != "" {
			return fmt.Sprintf("Failed to get power state for node %s. Error: %s", node.UUID, failure)
		}
	case "power on":
		return change("power on", "on", "On")
	case "power off":
		return change("power off", "off", "ForceOff")
	case "soft power off":
		return change("power off", "soft", "GracefulShutdown")
	case "inject_nmi":
		return control("diag", "Nmi")
	case "rebooting":
		if failure := change("power off", "off", "ForceOff"); failure != "" {
			return failure
		}
		return change("power on", "on", "On")
	}
	return ""
}
