package host_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccHost_takenNameSaysToImport(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.Must(http.MethodPost, "nodes", map[string]any{"name": s.Name("taken"), "driver": "fake-hardware"})
	t.Cleanup(func() { s.Must(http.MethodDelete, "nodes/"+s.Name("taken"), nil) })
	named := func(name string) string { return s.Provider() + acctest.HostBlock(name, `driver = "fake-hardware"`) }
	w := acctest.NewWorkspace(t, named(s.Name("taken")))
	acctest.Mention(t, w.Must("plan"), "Node exists already", "A node with name "+s.Name("taken")+" already exists", "The apply refuses")
	acctest.Fails(t, w, acctest.Apply(), "A node with name "+s.Name("taken")+" already exists",
		"Names are unique in Ironic. Import the existing node")
	if host := acctest.InState(t, w, acctest.HostAddress); host != nil {
		t.Errorf("a host that does not exist is in state: %v", host)
	}
	w.Configure(named(s.Name("free")))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	w.Configure(named(s.Name("taken"))) // a rename fails while planning, at the attribute
	acctest.Fails(t, w, []string{"plan"}, "A node with name "+s.Name("taken")+" already exists",
		"Names are unique in Ironic. Choose another name, or change node", "name = ")
	w.Configure(named(s.Name("free")))
	if host := acctest.InState(t, w, acctest.HostAddress); host.Tainted || host.Values["name"] != s.Name("free") {
		t.Errorf("the state has %+v", host)
	}
}

func TestAccHost_takenMACSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.Must(http.MethodPost, "nodes", map[string]any{"name": s.Name("taken"), "driver": "fake-hardware"})
	t.Cleanup(func() { s.Must(http.MethodDelete, "nodes/"+s.Name("taken"), nil) })
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": s.Node(s.Name("taken"))["uuid"], "address": s.MAC(1)})
	config := func(mac string) string { return hostConfig(s, `ports = { `+acctest.Quoted(mac)+` = {} }`) }
	w := acctest.NewWorkspace(t, config(s.MAC(1)))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "Could not enroll node "+s.Name("h"), "A port with MAC address "+s.MAC(1)+" already exists, on node "+
		s.Name("taken"),
		"A MAC address belongs to one node only. Import the node that has it")
	if host := acctest.InState(t, w, acctest.HostAddress); host != nil || s.Node(s.Name("h")) != nil {
		t.Fatalf("the state has %+v, in Ironic %v, want no half-made node", host, s.Node(s.Name("h")))
	}
	w.Configure(config(s.MAC(2)))
	w.Must("apply", "-auto-approve")
	defer w.Must("destroy", "-auto-approve")
	acctest.NoChanges(t, w)
}

func TestAccHost_explainsRefusals(t *testing.T) {
	for _, tt := range []struct{ name, config, want string }{
		{"unknown driver", `driver = "no-such-driver"`, "no driver no-such-driver. Enabled are" + `[\s\S]*` + "fake-hardware"},
		{"unknown trait", "driver = \"fake-hardware\"\n  traits = [\"HW_NO_SUCH_TRAIT\"]", "Add trait HW_NO_SUCH_TRAIT: Schema error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := site.Start(t, nil)
			acctest.Test(t,
				resource.TestStep{
					Config:      s.Provider() + acctest.HostBlock(s.Name("h"), tt.config),
					ExpectError: regexp.MustCompile(acctest.Wrapped(tt.want)),
				},
				resource.TestStep{Config: hostConfig(s)}, // the next apply repairs it
			)
		})
	}
}

// The plan refuses the attributes that an older API does not have.
func TestAccHost_planRefusesAttributesOfNewerAPI(t *testing.T) {
	s := site.Start(t, nil)
	config := func(version, setting string) string {
		return s.Provider(`microversion = `+acctest.Quoted(version)) + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, setting)
	}
	var steps []resource.TestStep
	for _, tt := range []struct{ setting, attribute, below, needs string }{
		{`owner = "alice"`, "owner", "1.49", "1.50"},
		{`description = "d"`, "description", "1.50", "1.51"},
		{`retired = true`, "retired", "1.60", "1.61"},
		{`lessee = "carol"`, "lessee", "1.64", "1.65"},
		{`shard = "s1"`, "shard", "1.50", "1.82"},
		{`network_data = jsonencode({ links = [], networks = [], services = [] })`, "network_data", "1.65", "1.66"},
		{`port_groups = { bond0 = {} }`, "port_groups", "1.25", "1.26"},
		{`ports = { "52:54:00:00:00:01" = { is_smartnic = false } }`, `ports["52:54:00:00:00:01"].is_smartnic`, "1.52", "1.53"},
		{`ports = { "52:54:00:00:00:01" = { name = "eno1" } }`, `ports["52:54:00:00:00:01"].name`, "1.82", "1.88"},
		{`ports = { "52:54:00:00:00:01" = { description = "d" } }`, `ports["52:54:00:00:00:01"].description`, "1.82", "1.97"},
		{`ports = { "52:54:00:00:00:01" = { vendor = "v" } }`, `ports["52:54:00:00:00:01"].vendor`, "1.82", "1.100"},
		{`ports = { "52:54:00:00:00:01" = { category = "c" } }`, `ports["52:54:00:00:00:01"].category`, "1.82", "1.101"},
		{`hardware_interfaces = { firmware = "fake" }`, "hardware_interfaces.firmware", "1.82", "1.86"},
	} {
		steps = append(steps, resource.TestStep{
			Config: config(tt.below, tt.setting), PlanOnly: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(regexp.QuoteMeta(tt.attribute) + " needs API " + tt.needs + " of Ironic, but " +
				tt.below + " is in use")),
		})
	}
	acctest.Test(t, append(steps,
		resource.TestStep{
			Config: config("1.50", `shard = "s1"`), PlanOnly: true,
			ExpectError: regexp.MustCompile(acctest.Wrapped(`Raise microversion in the provider block to at least "1.82"`)),
		},
		resource.TestStep{Config: config("1.50", `owner = "alice"`)},
		resource.TestStep{Config: config("1.50", `owner = "bob"`), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate)},
	)...)
}

func TestFakeHost_planRefusesAttributesOfNewerIronic(t *testing.T) {
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.81"})
	acctest.Test(t, resource.TestStep{
		Config: hostConfig(s, `shard = "s1"`), PlanOnly: true,
		ExpectError: regexp.MustCompile(acctest.Wrapped("shard needs API 1.82 of Ironic, but 1.81 is in use") + `[\s\S]*` +
			acctest.Wrapped("Upgrade Ironic, or remove the setting")),
	})
}

// The provider detects an Ironic that makes every changed node its own parent before it enrolls a host.
func TestFakeHost_parentDefectLeavesNothing(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{ParentNodeDefect: true, MaxMicroversion: "1.96"})
	w := acctest.NewWorkspace(t, hostConfig(s, `owner = "alice"`, acctest.Target("available")))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply succeeded:\n%s", output)
	}
	acctest.Mention(t, output, "This Ironic has a defect: a change of any node makes the node its own parent",
		"Upgrade Ironic, or ask your distribution for the corrected package")
	if nodes := s.Fake.Nodes(); len(nodes) > 0 {
		t.Errorf("left in Ironic: %v", nodes)
	}
	if host := acctest.InState(t, w, acctest.HostAddress); host != nil {
		t.Errorf("the state has %v", host)
	}
}

// Ironic refuses the reason of a host that is not retired, and forgets that of one which is not in maintenance.
func TestAccHost_reasonsOfNothingAreRefused(t *testing.T) {
	s := site.Start(t, nil)
	var steps []resource.TestStep
	for _, name := range []string{"maintenance", "retired"} {
		steps = append(steps, resource.TestStep{
			Config: hostConfig(s, name+" = false", name+`_reason = "broken"`), PlanOnly: true,
			ExpectError: regexp.MustCompile("(?s)Reason without effect.*" +
				acctest.Wrapped(name+" is false, and Ironic keeps a reason only while it is true")),
		})
	}
	acctest.Test(t, steps...)
}

// A host that is replaced, or that another resource of the same configuration had, has a node of the state: no plan warns of it.
func TestFakeHost_nodesOfTheStateAreNotTaken(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	block := func(as string) string {
		return s.Provider() + strings.Replace(acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`), `"h"`, acctest.Quoted(as), 1)
	}
	w := acctest.NewWorkspace(t, block("h"))
	w.Must("apply", "-auto-approve")
	acctest.NeverMention(t, w.Must("plan", "-replace=metal_host.h"), "Node exists already")
	w.Configure(block("other"))
	acctest.NeverMention(t, w.Must("apply", "-auto-approve"), "Node exists already")
	acctest.NeverMention(t, w.Must("destroy", "-auto-approve"), "Node exists already")
}

// A fault that Ironic has found stands in the plan that imports the host.
func TestFakeHost_importTellsOfAFault(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	name := s.Name("h")
	id, _ := s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "fake-hardware"})["uuid"].(string)
	for key, value := range map[string]any{"maintenance": true, "fault": "power failure", "maintenance_reason": "no power state"} {
		s.Fake.Set(id, key, value)
	}
	w := acctest.NewWorkspace(t, s.Provider()+"import {\n  to = metal_host.h\n  id = "+acctest.Quoted(name)+"\n}\n"+
		acctest.HostBlock(name, `driver = "fake-hardware"`, `maintenance = false`))
	acctest.Mention(t, w.Must("plan"), "Node with a fault", `Ironic reports "power failure" for node `+name, "no power state")
}
