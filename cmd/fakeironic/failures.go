package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// failing is a value of -fail: an operation of a node, by the node's name or UUID.
type failing struct{ node, state string }

// failures are how often operations still fail; negative means every time.
type failures map[failing]int

// states are the states of -fail, each with the last_error that Ironic writes when its operation fails, with NODE in the place of the
// node's UUID.
var states = []struct{ name, text string }{
	{"verify", "Failed to get power state for node NODE. Error: Unable to connect to the BMC: Connection timed out"},
	{"inspect", "Timeout reached while inspecting the node."},
	{"clean", "Timeout reached while cleaning the node. Please check if the ramdisk responsible for the cleaning is running on the node."},
	{"deploy", "Deploy step deploy.write_image failed on node NODE. Error writing image to device /dev/sda: Input/output error"},
	{"rebuild", "Deploy step deploy.write_image failed on node NODE. Error writing image to device /dev/sda: Input/output error"},
	{"undeploy", "Failed to tear down: Failed to set node power state to power off."},
	{"adopt", "Error while attempting to adopt node NODE: Unable to connect to the BMC: Connection timed out"},
	{"rescue", "Timeout reached while waiting for rescue ramdisk callback for node"},
	{"unrescue", "Failed to unrescue: Failed to set node power state to power off."},
	{"service", "Timeout reached while servicing the node. Please check if the ramdisk responsible for the servicing is " +
		"running on the node."},
	{"power", "Failed to change power state: Unable to connect to the BMC: Connection timed out"},
}

// verbs are the states of -fail by the verbs of Ironic that start their operations, where the names differ.
var verbs = map[string]string{
	"manage": "verify", "provide": "clean", "active": "deploy", "deleted": "undeploy",
	"power on": "power", "power off": "power", "rebooting": "power", "soft rebooting": "power", "soft power off": "power",
}

func stateNames() (names []string) {
	for _, s := range states {
		names = append(names, s.name)
	}
	return names
}

// add adds a value of -fail.
func (f failures) add(value string) error {
	node, what, found := strings.Cut(value, "=")
	state, times, counted := strings.Cut(what, ":")
	if !found || node == "" || state == "" {
		return fmt.Errorf("write NODE=STATE or NODE=STATE:N")
	}
	if !slices.Contains(stateNames(), state) {
		return fmt.Errorf("there is no state %q: choose one of %s", state, strings.Join(stateNames(), ", "))
	}
	key := failing{node, state}
	if _, twice := f[key]; twice {
		return fmt.Errorf("%s=%s is there twice", node, state)
	}
	f[key] = -1
	if !counted {
		return nil
	}
	n, err := strconv.Atoi(times)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of failures above 0", times)
	}
	f[key] = n
	return nil
}

// fail returns the last_error with which an operation on a node fails, "" if it succeeds. The fake calls it for one operation at a time.
func (f failures) fail(node fakeironic.Node, verb string) string {
	state := cmp.Or(verbs[verb], verb)
	if verb == "deleted" && node.ProvisionState != "deleting" {
		state = "clean" // the second part of an undeployment
	}
	for _, name := range []string{node.Name, node.UUID} {
		key := failing{name, state}
		left := f[key]
		if name == "" || left == 0 {
			continue
		}
		f[key] = left - min(1, max(left, 0))
		for _, s := range states {
			if s.name == state {
				return strings.ReplaceAll(s.text, "NODE", node.UUID)
			}
		}
	}
	return ""
}
