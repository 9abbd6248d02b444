package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// failing is a value of -fail: an operation of a node, by the node's name or UUID.
type failing struct{ node, state string }

// failure is how an operation fails.
type failure struct {
	reason string
	left   int // how often it still fails; negative means every time
}

// failures are the values of -fail.
type failures map[failing]*failure

// states are the states of -fail, each with the words with which Ironic frames the cause when its operation fails, and the reason for which
// it fails unless the flag names another.
var states = []struct{ name, frame, reason string }{
	{"verify", "Failed to get power state for node NODE. Error: ", "bmc-unreachable"},
	{"inspect", "Failed to inspect hardware. Reason: ", "inspection-timeout"},
	{"clean", "Failed to prepare node NODE for cleaning: ", "clean-timeout"},
	{"deploy", "Failed to prepare to deploy: ", "image-write"},
	{"rebuild", "Failed to prepare to deploy: ", "image-write"},
	{"undeploy", "Failed to tear down: ", "power-timeout"},
	{"adopt", "Error while attempting to adopt node NODE: ", "bmc-unreachable"},
	{"rescue", "Failed to rescue: ", "rescue"},
	{"unrescue", "Failed to unrescue: ", "power-timeout"},
	{"service", "Failed to prepare node NODE for service: ", "service-timeout"},
	{"power", "Failed to change power state to 'TARGET' by 'TARGET': ", "bmc-unreachable"},
}

// words are what Ironic says for a reason in a version, 21.4 or 39; "": both. FRAME stands for the frame of the state, NODE for the node's
// UUID, IMAGE for the address of its image, TARGET for a power state.
//
//go:embed words.tsv
var words string

// wordsOf returns the words for a reason, "" if there is no such reason.
func wordsOf(reason string, legacy bool) (text string) {
	version := map[bool]string{true: "21.4", false: "39"}[legacy]
	for row := range strings.SplitSeq(words, "\n") {
		if f := strings.SplitN(row, "\t", 3); f[0] == reason && (f[1] == "" || f[1] == version) {
			text = strings.ReplaceAll(f[2], `\n`, "\n")
		}
	}
	return text
}

// reasonNames returns the reasons, in the order of the table.
func reasonNames() (names []string) {
	for _, row := range strings.Split(strings.TrimSpace(words), "\n")[1:] {
		name, _, _ := strings.Cut(row, "\t")
		names = append(names, name)
	}
	return slices.Compact(names)
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
	what, times, counted := strings.Cut(what, ":")
	state, reason, reasoned := strings.Cut(what, "@")
	if !found || node == "" || state == "" {
		return fmt.Errorf("write NODE=STATE, NODE=STATE:N or NODE=STATE@REASON")
	}
	i := slices.Index(stateNames(), state)
	switch {
	case i < 0:
		return fmt.Errorf("there is no state %q: choose one of %s", state, strings.Join(stateNames(), ", "))
	case !reasoned:
		reason = states[i].reason
	case !slices.Contains(reasonNames(), reason):
		return fmt.Errorf("there is no reason %q: choose one of %s", reason, strings.Join(reasonNames(), ", "))
	}
	key := failing{node, state}
	if _, twice := f[key]; twice {
		return fmt.Errorf("%s=%s is there twice", node, state)
	}
	f[key] = &failure{reason: reason, left: -1}
	if !counted {
		return nil
	}
	n, err := strconv.Atoi(times)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of failures above 0", times)
	}
	f[key].left = n
	return nil
}

// fail returns the last_error with which an operation on a node fails, "" if it succeeds. legacy: as Ironic 21.4 says it. The fake calls it
// for one operation at a time.
func (f failures) fail(node fakeironic.Node, verb string, legacy bool) string {
	state := cmp.Or(verbs[verb], verb)
	if verb == "deleted" && node.ProvisionState != "deleting" {
		state = "clean" // the second part of an undeployment
	}
	for _, name := range []string{node.Name, node.UUID} {
		how := f[failing{name, state}]
		if name == "" || how == nil || how.left == 0 {
			continue
		}
		how.left -= min(1, max(how.left, 0))
		info, _ := node.Raw["instance_info"].(map[string]any)
		image, _ := info["image_source"].(string)
		image = cmp.Or(image, "http://192.0.2.5/images/a.qcow2")
		target := "power off"
		if state == "power" {
			target = verb
		}
		text := strings.Replace(wordsOf(how.reason, legacy), "FRAME", states[slices.Index(stateNames(), state)].frame, 1)
		return strings.NewReplacer("NODE", node.UUID, "IMAGE", image, "TARGET", target).Replace(text)
	}
	return ""
}
