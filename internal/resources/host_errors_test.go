package resources_test

import (
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestAccHost_takenNameSaysToImport(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	s.Must(http.MethodPost, "nodes", map[string]any{"name": s.Name("taken"), "driver": "fake-hardware"})
	t.Cleanup(func() { s.Must(http.MethodDelete, "nodes/"+s.Name("taken"), nil) })
	named := func(name string) string { return s.Provider() + hostBlock(name, `driver = "fake-hardware"`) }
	w := acctest.NewWorkspace(t, named(s.Name("taken")))
	refused := func() {
		t.Helper()
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Fatalf("the apply succeeded:\n%s", output)
		}
		mention(t, output, "A node with name "+s.Name("taken")+" already exists", "Names are unique in Ironic. Import the existing node")
	}
	refused()
	if host := inState(t, w, hostAddress); host != nil {
		t.Errorf("a host that does not exist is in state: %v", host)
	}
	w.Configure(named(s.Name("free")))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	w.Configure(named(s.Name("taken"))) // a rename meets it likewise, and leaves everything as it was
	refused()
	if host := inState(t, w, hostAddress); host.Tainted || host.Values["name"] != s.Name("free") {
		t.Errorf("in state is %+v", host)
	}
}

func TestAccHost_takenMACSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	s.Must(http.MethodPost, "nodes", map[string]any{"name": s.Name("taken"), "driver": "fake-hardware"})
	t.Cleanup(func() { s.Must(http.MethodDelete, "nodes/"+s.Name("taken"), nil) })
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": s.Node(s.Name("taken"))["uuid"], "address": s.MAC(1)})
	config := func(mac string) string { return hostConfig(s, `ports = { `+quoted(mac)+` = {} }`) }
	w := acctest.NewWorkspace(t, config(s.MAC(1)))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	mention(t, output, "Could not enroll node "+s.Name("h"), "A port with MAC address "+s.MAC(1)+" already exists, on node "+s.Name("taken"),
		"A MAC address belongs to one node only. Import the node that has it")
	if host := inState(t, w, hostAddress); host != nil || s.Node(s.Name("h")) != nil {
		t.Fatalf("in state is %+v, in Ironic %v, want no half-made node", host, s.Node(s.Name("h")))
	}
	w.Configure(config(s.MAC(2)))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	noChanges(t, w)
}

func TestAccHost_whatIronicRefusesIsExplained(t *testing.T) {
	for _, tt := range []struct{ name, config, want string }{
		{"unknown driver", `driver = "no-such-driver"`, "which supports driver no-such-driver" + `[\s\S]*` + "Check driver and conductor_group: no running conductor serves that combination"},
		{"unknown interface", "driver = \"fake-hardware\"\n  interfaces = { deploy = \"no-such-interface\" }", "entrypoint: no-such-interface. Valid interfaces are"},
		{"unknown trait", "driver = \"fake-hardware\"\n  traits = [\"NO_SUCH_TRAIT\"]", "Add trait NO_SUCH_TRAIT: Schema error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := acctest.Start(t, nil)
			test(t,
				resource.TestStep{Config: s.Provider() + hostBlock(s.Name("h"), tt.config), ExpectError: regexp.MustCompile(wrapped(tt.want))},
				resource.TestStep{Config: hostConfig(s)}, // and is put right by the next apply
			)
		})
	}
}

func TestAccHost_portsOfAnAvailableHostSayWhenTheyCanChange(t *testing.T) {
	s := acctest.Start(t, nil)
	config := func(pxe string, more ...string) string {
		return hostConfig(s, append([]string{`ports = { ` + quoted(s.MAC(1)) + ` = { pxe_enabled = ` + pxe + ` } }`}, more...)...)
	}
	test(t,
		resource.TestStep{Config: config("true", target("available"))},
		resource.TestStep{
			Config:      config("false", target("available")),
			ExpectError: regexp.MustCompile(wrapped("can not have any connectivity attributes") + `[\s\S]*` + wrapped(`Put it into maintenance for the change`)),
		},
		resource.TestStep{
			Config:            config("false", target("available"), `maintenance = true`),
			ConfigStateChecks: []statecheck.StateCheck{onPort{s, s.MAC(1), map[string]any{"pxe_enabled": false}}},
		},
	)
}

// What an older API lacks is refused in the plan, by name, before anything is done.
func TestAccHost_attributesThatTheAPILacksAreRefusedInThePlan(t *testing.T) {
	s := acctest.Start(t, nil)
	config := func(version, setting string) string {
		return s.Provider(`microversion = `+quoted(version)) + hostBlock(s.Name("h"), `driver = "fake-hardware"`, setting)
	}
	var steps []resource.TestStep
	for _, tt := range []struct{ setting, attribute, below, needs string }{
		{`protected = true`, "protected", "1.47", "1.48"},
		{`owner = "alice"`, "owner", "1.49", "1.50"},
		{`description = "d"`, "description", "1.50", "1.51"},
		{`retired = true`, "retired", "1.60", "1.61"},
		{`lessee = "carol"`, "lessee", "1.64", "1.65"},
		{`shard = "s1"`, "shard", "1.50", "1.82"},
		{`interfaces = { firmware = "fake" }`, "interfaces.firmware", "1.82", "1.86"},
	} {
		steps = append(steps, resource.TestStep{
			Config: config(tt.below, tt.setting), PlanOnly: true,
			ExpectError: regexp.MustCompile(wrapped(tt.attribute + " needs API " + tt.needs + " of Ironic, but " + tt.below + " is in use")),
		})
	}
	test(t, append(steps,
		resource.TestStep{
			Config: config("1.50", `shard = "s1"`), PlanOnly: true,
			ExpectError: regexp.MustCompile(wrapped(`Raise microversion in the provider block to at least "1.82", or leave it out`)),
		},
		resource.TestStep{Config: config("1.50", `owner = "alice"`)},
		resource.TestStep{Config: config("1.50", `owner = "bob"`), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate)},
	)...)
}

func TestFakeHost_attributesThatTheServerLacksAreRefusedInThePlan(t *testing.T) {
	s := acctest.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.81"})
	test(t, resource.TestStep{
		Config: hostConfig(s, `shard = "s1"`), PlanOnly: true,
		ExpectError: regexp.MustCompile(wrapped("shard needs API 1.82 of Ironic, but 1.81 is in use") + `[\s\S]*` + wrapped("Upgrade Ironic, or remove the setting")),
	})
}

// An Ironic that makes every changed node its own parent is found out before a host is enrolled in it.
func TestFakeHost_nothingIsLeftInAnIronicWithTheParentDefect(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, &fakeironic.Server{ParentNodeDefect: true, MaxMicroversion: "1.96"})
	w := acctest.NewWorkspace(t, hostConfig(s, `owner = "alice"`, target("available")))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	mention(t, output, "This Ironic has a defect: a change of any node makes the node its own parent", "Upgrade Ironic, or ask your distribution for the corrected package")
	if nodes := s.Fake.Nodes(); len(nodes) > 0 {
		t.Errorf("left in Ironic: %v", nodes)
	}
	if host := inState(t, w, hostAddress); host != nil {
		t.Errorf("in state is %v", host)
	}
}

// An answer that gets lost on its way does not make a second node or port of what was asked once.
func TestFakeHost_lostAnswersMakeNoTwins(t *testing.T) {
	var nodes, ports atomic.Int32
	s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		lost := r.Method == http.MethodPost &&
			(r.URL.Path == "/v1/nodes" && nodes.Add(1) == 1 || r.URL.Path == "/v1/ports" && ports.Add(1) == 1)
		if lost {
			return &fakeironic.Rejection{After: true, Drop: true}
		}
		return nil
	}})
	test(t, resource.TestStep{
		Config:            hostConfig(s, `ports = { `+quoted(s.MAC(1))+` = {} }`),
		ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{"name": s.Name("h")}), onPort{s, s.MAC(1), map[string]any{"pxe_enabled": true}}},
	})
	if nodes.Load() != 1 || ports.Load() != 1 {
		t.Errorf("%d nodes and %d ports were asked for, want 1 each", nodes.Load(), ports.Load())
	}
}
