package main

import (
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
		text := f.fail(fakeironic.Node{Name: "n1", UUID: uuid, ProvisionState: step.state}, step.verb)
		if (text != "") != step.fails || strings.Contains(text, "NODE") {
			t.Errorf("step %d, %s in %s: last_error %q, want a failure: %t", i+1, step.verb, step.state, text, step.fails)
		}
	}
	if text := f.fail(fakeironic.Node{UUID: uuid}, "provide"); text != "" {
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

// bodyOf is the body of a request for a provision state.
func bodyOf(verb string) string {
	more := map[string]string{
		"rescue":  `, "rescue_password": "x"`,
		"service": `, "service_steps": [{"interface": "bios", "step": "factory_reset"}]`,
	}
	return `{"target": "` + verb + `"` + more[verb] + `}`
}
