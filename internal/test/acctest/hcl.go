package acctest

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Host returns the HCL of a host "hN" in the test's class with target_state "available" and further settings.
func Host(s *site.Site, n int, settings ...string) string {
	return fmt.Sprintf("resource \"metal_host\" \"h%d\" {\n  name = %q\n  driver = \"fake-hardware\"\n  resource_class = %q\n "+
		" target_state = \"available\"\n  %s\n}\n",
		n, s.Name(fmt.Sprintf("h%d", n)), s.Class(), strings.Join(settings, "\n  "))
}

// Allocation returns the HCL of the allocation "a" in the test's class, with further settings.
func Allocation(s *site.Site, settings ...string) string {
	return fmt.Sprintf("resource \"metal_allocation\" \"a\" {\n  resource_class = %q\n  %s\n}\n", s.Class(), strings.Join(settings, "\n  "))
}

// Deployment returns the HCL of the deployment "d" of a node, with further settings. node is an HCL expression.
func Deployment(node string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_deployment\" \"d\" {\n  node_id = %s\n  %s\n}\n", node, strings.Join(settings, "\n  "))
}

// Allocated returns the HCL of the deployment "d" of the node of the allocation "a".
func Allocated(settings ...string) string {
	return Deployment("metal_allocation.a.node_id", append([]string{"allocation_id = metal_allocation.a.id"}, settings...)...)
}

// Quoted returns a string as an HCL expression.
func Quoted(s string) string { return fmt.Sprintf("%q", s) }

// Images is the URL of a server for images that does not answer: a connection fails at once, so Ironic's check is quick.
const Images = "http://127.0.0.1:9/"

// Image returns the HCL of a whole-disk image.
func Image(name string) string {
	return fmt.Sprintf("image = {\n    url = %q\n    checksum = %q\n    disk_format = \"qcow2\"\n  }", Images+name+".qcow2",
		Checksum(name))
}

// Checksum is the SHA-256 of an image with a name: images with other names have other content.
func Checksum(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name))) }

// RunImage makes a node say that another client has deployed an image on it.
func RunImage(s *site.Site, node, name string) {
	s.Patch(node, "add", "/instance_info/image_source", Images+name+".qcow2")
	s.Patch(node, "add", "/instance_info/image_os_hash_value", Checksum(name))
}

// FailingStep is the HCL of deploy steps that make a deployment fail on every Ironic: they disable the core step.
const FailingStep = `deploy_steps = [{ interface = "deploy", step = "deploy", args = jsonencode({}), priority = 0 }]`

// LastErrorOfFailingStep is Ironic's last_error after a deployment with FailingStep.
const LastErrorOfFailingStep = "No deploy steps returned by the driver"

// Target returns the HCL of a target state.
func Target(state string) string { return "target_state = " + Quoted(state) }

// HostAddress is the address of the host "h".
const HostAddress = "metal_host.h"

// HostBlock returns the HCL of the host "h" with the settings, which must select a driver.
func HostBlock(name string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_host\" \"h\" {\n  name = %q\n  %s\n}\n", name, strings.Join(settings, "\n  "))
}

// DeploymentAddress is the address of the deployment "d".
const DeploymentAddress = "metal_deployment.d"

// AllocationAddress is the address of the allocation "a".
const AllocationAddress = "metal_allocation.a"
