package main

import (
	"io"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestFailures_failOperationsByNameAndNumber(t *testing.T) {
	t.Parallel()
	const uuid = "4a3c7f10-6d2b-4e1f-9c55-000000000001"
	f := failures{}
	for _, value := range []string{"n1=clean", "n1=deploy:2", uuid + "=power:1", "n2=rescue"} {
		if err := f.add(value); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		verb, state string // of Ironic
		fails       bool
	}{
		{"manage", "verifying", false},
		{"provide", "cleaning", true},
		{"clean", "cleaning", true},
		{"deleted", "cleaning", true},
		{"deleted", "deleting", false},
		{"active", "deploying", true},
		{"active", "deploying", true},
		{"active", "deploying", false},
		{"rebuild", "deploying", false},
		{"power on", "active", true},
		{"power off", "active", false},
		{"rescue", "rescuing", false},
		{"unhold", "cleaning", false},
	} {
		text := f.fail(fakeironic.Node{Name: "n1", UUID: uuid, ProvisionState: step.state}, step.verb, false)
		if (text != "") != step.fails || strings.Contains(text, "NODE") {
			t.Errorf("step %d, %s in %s: last_error %q, want a failure: %t", i+1, step.verb, step.state, text, step.fails)
		}
	}
	if text := f.fail(fakeironic.Node{UUID: uuid}, "provide", false); text != "" {
		t.Errorf("a node without a name fails: %s", text)
	}
}

// TestFailures_failOnTheFake: each state of -fail is one that an operation of the fake reaches.
func TestFailures_failOnTheFake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ state, from, verb, want string }{
		{"verify", "enroll", "manage", "enroll"},
		{"inspect", "manageable", "inspect", "inspect failed"},
		{"clean", "manageable", "provide", "clean failed"},
		{"clean", "active", "deleted", "clean failed"},
		{"deploy", "available", "active", "deploy failed"},
		{"rebuild", "active", "rebuild", "deploy failed"},
		{"undeploy", "active", "deleted", "error"},
		{"adopt", "manageable", "adopt", "adopt failed"},
		{"rescue", "active", "rescue", "rescue failed"},
		{"unrescue", "rescue", "unrescue", "unrescue failed"},
		{"service", "active", "service", "service failed"},
	} {
		fake, _ := serverOf(t, "-nodes", "1", "-fail", "node-000="+tt.state)
		fake.Set("node-000", "provision_state", tt.from)
		fake.Set("node-000", "instance_info", map[string]any{"image_source": "http://x/a"})
		put(t, serve(t, fake)+"/v1/nodes/node-000/states/provision", bodyOf(tt.verb))
		if node, _ := fake.Node("node-000"); node.ProvisionState != tt.want || node.LastError == "" {
			t.Errorf("-fail node-000=%s: %s of a node in %s ends in %q with last_error %q, want %q", tt.state, tt.verb, tt.from,
				node.ProvisionState, node.LastError, tt.want)
		}
	}
	fake, _ := serverOf(t, "-nodes", "1", "-fail", "node-000=power")
	put(t, serve(t, fake)+"/v1/nodes/node-000/states/power", `{"target": "power on"}`)
	if node, _ := fake.Node("node-000"); node.PowerState != "power off" || node.LastError == "" {
		t.Errorf("power: %s, last_error %q", node.PowerState, node.LastError)
	}
}

// A failure for a reason has the words of the faked version, with the frame of the operation and the address of the node's image.
func TestFailures_sayWhatTheVersionSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ version, fail, verb, want string }{
		{"1.115", "deploy@image-404", "active", "Failed to prepare to deploy: Validation of image href http://x/a failed, " +
			"reason: Got HTTP code 404 instead of 200 in response to HEAD request."},
		{"1.115", "inspect@inspection-timeout", "inspect", "Timeout reached while inspecting the node. Please check"},
		{"1.83", "inspect@inspection-timeout", "inspect", "Timeout reached while inspecting the node. Please check"},
		{"1.82", "inspect@inspection-timeout", "inspect", "timeout reached while inspecting the node"},
		{"1.82", "verify@redfish-auth:1", "manage", "returned code 401"},
		{"1.115", "undeploy", "deleted", "Failed to tear down: Failed to set node power state to power off."},
		{"1.115", "power", "rebooting", "Failed to change power state to 'rebooting' by 'rebooting': Redfish connection failed"},
	} {
		o, err := readOptions([]string{"-max-microversion", tt.version, "-fail", "n1=" + tt.fail}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		node := fakeironic.Node{Name: "n1", ProvisionState: "deleting", Raw: map[string]any{
			"instance_info": map[string]any{"image_source": "http://x/a"},
		}}
		if text := o.failures.fail(node, tt.verb, o.legacy()); !strings.Contains(text, tt.want) {
			t.Errorf("%s of %s: %q", tt.fail, tt.version, text)
		}
	}
}

// bodyOf is the body of a request for a provision state.
func bodyOf(verb string) string {
	more := map[string]string{
		"rescue":  `, "rescue_password": "x"`,
		"service": `, "service_steps": [{"interface": "bios", "step": "factory_reset"}]`,
	}
	return `{"target": "` + verb + `"` + more[verb] + `}`
}
