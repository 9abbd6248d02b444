package planned_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast/planned"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// read reads a plan in testdata.
func read(t *testing.T, name string) *planned.Work {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := planned.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// story describes a step in one line: what it does, and after which others, by the beginnings of their addresses.
func story(w *planned.Work, s forecast.Step) string {
	var after []string
	for _, on := range s.After {
		name := w.Steps[on].Address
		if w.Steps[on].Removes {
			name = "-" + name
		}
		after = append(after, name)
	}
	slices.Sort(after)
	text := s.Address + ": " + s.Does
	if s.Machine != nil {
		text += fmt.Sprintf(" on %s (%s)", s.Machine.Name, s.Machine.Class)
	}
	if s.Turn != nil {
		text += fmt.Sprintf(", turn %s %q", s.Turn.Change, s.Turn.Settings.Group)
	}
	if len(after) > 0 {
		text += " after " + strings.Join(after, " ")
	}
	return text
}

func TestRead_planOfARealTerraform(t *testing.T) {
	t.Parallel()
	w := read(t, "site.json")
	hosts := "metal_host.new[0] metal_host.new[1] metal_host.new[2] metal_host.new[3]"
	members := `module.db.metal_deployment.this["db-0"] module.db.metal_deployment.this["db-1"] module.db.metal_deployment.this["db-2"]`
	want := []string{
		"metal_allocation.web[0]: other after " + hosts,
		"metal_allocation.web[1]: other after " + hosts,
		"metal_deployment.gone: undeploy, clean on gone ()",
		`metal_deployment.old: undeploy, clean on old-0 (), turn replace ""`,
		`metal_deployment.old: deploy on old-0 (), turn deploy "" after -metal_deployment.old`,
		`metal_deployment.own: deploy on new-3 (baremetal), turn deploy "" after metal_host.new[3]`,
		`metal_deployment.web[0]: deploy on (known after apply) (baremetal), turn deploy "" after metal_allocation.web[0] metal_allocation.web[1] ` + hosts + " " + members,
		`metal_deployment.web[1]: deploy on (known after apply) (baremetal), turn deploy "" after metal_allocation.web[0] metal_allocation.web[1] ` + hosts + " " + members,
		"metal_host.gone: remove from Ironic after -metal_deployment.gone",
		"metal_host.new[0]: enroll, inspect, clean on new-0 (baremetal)",
		"metal_host.new[1]: enroll, clean on new-1 (baremetal)",
		"metal_host.new[2]: enroll, clean on new-2 (baremetal)",
		"metal_host.new[3]: enroll, clean on new-3 (baremetal)",
		`module.db.metal_deployment.this["db-0"]: rebuild on db-0 (), turn rebuild "databases"`,
		`module.db.metal_deployment.this["db-1"]: rebuild on db-1 (), turn rebuild "databases"`,
		`module.db.metal_deployment.this["db-2"]: rebuild on db-2 (), turn rebuild "databases"`,
	}
	var got []string
	for _, s := range w.Steps {
		got = append(got, story(w, s))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l := w.Provider.Limit; l.Max != 3 || l.StuckAfter != 30*time.Minute || l.Coordination != throttle.CoordinationIronic ||
		w.Provider.Unknown != "" {
		t.Errorf("the limit is %+v, unknown: %q", l, w.Provider.Unknown)
	}
	if n := w.Steps[15].Turn.Settings; n.MaxUnavailable != 1 || *n.Canary != 1 || *n.MaxFailures != 2 {
		t.Errorf("the rollout is %+v", n)
	}
	if w.Steps[5].Machine != w.Steps[12].Machine {
		t.Error("the deployment of a new host is on another machine")
	}
}

// plan is a plan with changes and a configuration.
func plan(changes, configuration string) []byte {
	if configuration == "" {
		configuration = `{"root_module": {}}`
	}
	return []byte(`{"format_version": "1.2", "planned_values": {}, "variables": {"limit": {"value": {"max_concurrent": 7}}, "n": {"value": 3}},
		"resource_changes": [` + changes + `], "configuration": ` + configuration + `}`)
}

// change is a change of an instance in a plan.
func change(address, actions, before, after, unknown string) string {
	kind := address[:strings.Index(address, ".")]
	if strings.HasPrefix(address, "module.") {
		kind = strings.Split(address, ".")[2]
	}
	return fmt.Sprintf(
		`{"address": %q, "mode": "managed", "type": %q, "change": {"actions": [%s], "before": %s, "after": %s, "after_unknown": %s}}`,
		address, kind, actions, before, after, unknown)
}

func TestRead_whatChangesDo(t *testing.T) {
	t.Parallel()
	const host = `{"id": "u", "name": "r1", "resource_class": "gpu", "target_state": "available", "cleanings": 1, "inspect_triggers": null, "bios_settings": null}`
	const active = `{"id": "u", "name": "r1", "provision_state": "active", "cleanings": 1, "bios_settings": null, "hardware_changes": {"on_active": "service"}, "target_state": "available"}`
	const deployment = `{"id": "u", "node_id": "r1", "node_name": "r1", "rebuilds": 0, "restarts": 2, "rollout": null, "image": {"url": "http://a", "checksum": "c"}}`
	with := func(of, was, is string) string { return strings.Replace(of, was, is, 1) }
	for _, tt := range []struct{ name, change, want string }{
		{"nothing", change("metal_host.r", `"no-op"`, host, host, "{}"), ""},
		{"a name", change("metal_host.r", `"update"`, host, with(host, `"r1"`, `"r2"`), "{}"), "update []"},
		{"triggers of an inspection", change("metal_host.r", `"update"`, host, with(with(host, `"cleanings": 1`, `"cleanings": 2`),
			`"inspect_triggers": null`, `"inspect_triggers": {"a": "b"}`), "{}"), "prepare, inspect, clean [[inspect] [clean]]"},
		{"BIOS settings", change("metal_host.r", `"update"`, host, with(with(host, `"cleanings": 1`, `"cleanings": 2`),
			`"bios_settings": null`, `"bios_settings": {"a": "b"}`), "{}"), "prepare, clean, clean [[clean] [clean]]"},
		{"a boot mode", change("metal_host.r", `"update"`, host, with(with(host, `"cleanings": 1`, `"cleanings": 2`), `"name"`,
			`"boot_mode": "uefi", "name"`), "{}"), "prepare, power on [[power-on]]"},
		{"power", change("metal_host.r", `"update"`, with(host, `"name"`, `"power_state": "off", "name"`),
			with(host, `"name"`, `"power_state": "on", "name"`), "{}"), "update, power on [[power-on]]"},
		{"power that is on", change("metal_host.r", `"update"`, with(host, `"name"`, `"power_state": "on", "name"`),
			with(host, `"name": "r1"`, `"power_state": "on", "name": "r2"`), "{}"), "update []"},
		{"a new host that is to be on", change("metal_host.r", `"create"`, "null", with(host, `"id": "u",`, `"power_state": "on",`),
			`{"id": true}`), "enroll, clean, power on [[verify] [clean] [power-on]]"},
		{"a new host that is not prepared", change("metal_host.r", `"create"`, "null", with(with(host, `"id": "u",`,
			`"inspect": true, "raid": {},`), `"available"`, `"enroll"`), `{"id": true}`), "enroll [[verify]]"},
		{
			"a cleaning that may be", change("metal_host.r", `"update"`, host, host, `{"cleanings": true}`),
			"prepare, clean [[clean]] may be",
		},
		{"no automated cleaning", change("metal_host.r", `"create"`, "null", with(host, `"id": "u",`, `"automated_clean": false,`),
			`{"id": true}`), "enroll [[verify]]"},
		{"a deleted host", change("metal_host.r", `"delete"`, host, "null", "{}"), "remove from Ironic []"},
		{
			"a service", change("metal_host.r", `"update"`, with(active, `"bios_settings": null`, `"bios_settings": {"a": "0"}`),
				with(with(active, `"cleanings": 1`, `"cleanings": 2`), `"bios_settings": null`, `"bios_settings": {"a": "1"}`), "{}"),
			`prepare, service [[service]] turn service [{"a":"1"},null]`,
		},
		{"a service of a machine that is on", change("metal_host.r", `"update"`,
			with(active, `"bios_settings": null`, `"power_state": "on", "bios_settings": {"a": "0"}`),
			with(with(active, `"cleanings": 1`, `"cleanings": 2`), `"bios_settings": null`,
				`"power_state": "on", "bios_settings": {"a": "1"}`), "{}"), `prepare, service [[service]] turn service [{"a":"1"},null]`},
		{"settings that wait", change("metal_host.r", `"update"`, active,
			with(active, `"bios_settings": null`, `"bios_settings": {"a": "1"}`), "{}"), "update []"},
		{
			"another image", change("metal_deployment.d", `"update"`, deployment, with(deployment, `"rebuilds": 0`, `"rebuilds": 1`), "{}"),
			"rebuild [[deploy]] turn rebuild http://a c",
		},
		{
			"a restart", change("metal_deployment.d", `"update"`, deployment, with(deployment, `"restarts": 2`, `"restarts": 3`), "{}"),
			"restart [[restart]] turn restart http://a c",
		},
		{
			"a rebuild that may be", change("metal_deployment.d", `"update"`, deployment, deployment,
				`{"rebuilds": true, "restarts": true}`),
			"rebuild [[deploy]] may be turn rebuild http://a c",
		},
		{"power of a deployment", change("metal_deployment.d", `"update"`, with(deployment, `"rollout"`, `"power_state": "off", "rollout"`),
			with(deployment, `"rollout"`, `"power_state": "on", "rollout"`), "{}"), "power on [[power-on]]"},
		{
			"power, and until the machine answers",
			change("metal_deployment.d", `"update"`, with(deployment, `"rollout"`, `"power_state": "off", "rollout"`),
				with(deployment, `"rollout"`, `"power_state": "on", "ready_check": {}, "rollout"`), "{}"), "power on [[restart]]",
		},
		{"power off", change("metal_deployment.d", `"update"`, with(deployment, `"rollout"`, `"power_state": "on", "rollout"`),
			with(deployment, `"rollout"`, `"power_state": "off", "rollout"`), "{}"), "update []"},
		{"a machine that is adopted", change("metal_deployment.d", `"create"`, "null",
			with(deployment, `"image"`, `"adopt": true, "image"`), "{}"), "adopt []"},
		{"a machine that keeps running", change("metal_deployment.d", `"delete"`,
			with(deployment, `"rollout"`, `"on_destroy": "forget", "rollout"`), "null", "{}"), "forget []"},
		{
			"a replacement", change("metal_deployment.d", `"delete", "create"`, deployment, deployment, "{}"),
			"undeploy, clean [[undeploy clean]] turn replace http://a c; deploy [[deploy]] turn deploy http://a c after 0",
		},
		{
			"the new one first", change("metal_deployment.d", `"create", "delete"`, deployment, deployment, "{}"),
			"undeploy, clean [[undeploy clean]] turn replace http://a c after 1; deploy [[deploy]] turn deploy http://a c",
		},
		{
			"a replacement that drops the old one", change("metal_deployment.d", `"create", "forget"`, deployment, deployment, "{}"),
			"deploy [[deploy]] turn deploy http://a c",
		},
		{
			"dropped first", change("metal_deployment.d", `"forget", "create"`, deployment, deployment, "{}"),
			"deploy [[deploy]] turn deploy http://a c",
		},
		{"a machine that is dropped", change("metal_deployment.d", `"forget"`, deployment, "null", "{}"), ""},
		{"an allocation", change("metal_allocation.a", `"create"`, "null", `{}`, "{}"), "other []"},
		{"another provider", change("null_resource.a", `"create"`, "null", `{}`, "{}"), " []"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, err := planned.Read(plan(tt.change, ""))
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, s := range w.Steps {
				text := fmt.Sprintf("%s %v", s.Does, s.Legs)
				if s.MayBe {
					text += " may be"
				}
				if s.Turn != nil {
					text += " turn " + string(s.Turn.Change) + " " + s.Turn.Content
				}
				for _, on := range s.After {
					text += fmt.Sprintf(" after %d", on)
				}
				all = append(all, text)
			}
			if got := strings.Join(all, "; "); got != tt.want || strings.Contains(got, "may be") != strings.Contains(fmt.Sprint(w.Notes),
				"is not known before") {
				t.Errorf("%q, want %q; notes %q", got, tt.want, w.Notes)
			}
		})
	}
}

// resource is a resource block in the configuration of a plan.
func resource(address, references string, more ...string) string {
	return fmt.Sprintf(
		`{"address": %q, "mode": "managed", "type": %q, "provider_config_key": "metal", "expressions": {"x": {"references": [%s]}}%s}`,
		address, address[:strings.Index(address, ".")], references, strings.Join(more, ""))
}

func TestRead_whatWaitsForWhat(t *testing.T) {
	t.Parallel()
	made := func(address string) string { return change(address, `"create"`, "null", `{}`, `{"node_id": true}`) }
	gone := func(address string) string { return change(address, `"delete"`, `{"id": "u"}`, "null", "{}") }
	for _, tt := range []struct{ name, changes, configuration, want, note string }{
		{
			"a reference", made("metal_host.h") + "," + made("metal_deployment.d"),
			resource("metal_deployment.d", `"metal_host.h.id", "metal_host.h"`), "1>0", "",
		},
		{
			"all instances", made("metal_host.h[0]") + "," + made("metal_host.h[1]") + "," + made("metal_deployment.d[0]"),
			resource("metal_deployment.d", `"metal_host.h", "count.index"`), "2>0 2>1", "",
		},
		{
			"one instance", made("metal_host.h[0]") + "," + made("metal_host.h[1]") + "," + made("metal_deployment.d"),
			resource("metal_deployment.d", `"metal_host.h[1].id", "metal_host.h[1]", "metal_host.h"`), "2>1", "",
		},
		{
			"depends_on", made("metal_host.h") + "," + made("metal_deployment.d"),
			resource("metal_deployment.d", "", `, "depends_on": ["metal_host.h"]`), "1>0", "",
		},
		{
			"through a resource without a change", made("metal_host.h") + "," + made("metal_deployment.d"),
			resource("metal_deployment.d", `"data.metal_host.x.id", "data.metal_host.x"`) + "," +
				resource("data.metal_host.x", `"metal_host.h.name", "metal_host.h"`), "1>0", "",
		},
		{
			"a local value", made("metal_host.h") + "," + made("metal_deployment.d"), resource("metal_deployment.d", `"local.node"`), "",
			"does not say what local.node refers to",
		},
		{"removals, the other way round", gone("metal_host.h") + "," + gone("metal_deployment.d"), resource("metal_host.h", "") + "," +
			resource("metal_deployment.d", `"metal_host.h.id", "metal_host.h"`), "0>1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, err := planned.Read(plan(tt.changes, `{"root_module": {"resources": [`+tt.configuration+`]}}`))
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for i, s := range w.Steps {
				for _, on := range s.After {
					all = append(all, fmt.Sprintf("%d>%d", i, on))
				}
			}
			if got := strings.Join(all, " "); got != tt.want || tt.note != "" && !strings.Contains(strings.Join(w.Notes, " "), tt.note) {
				t.Errorf("%q, notes %v; want %q", got, w.Notes, tt.want)
			}
		})
	}
}

// A value that a module hands in leads to the resource of the caller, and an output to the resource in the module.
func TestRead_modules(t *testing.T) {
	t.Parallel()
	changes := change("metal_host.h", `"create"`, "null", `{}`, `{}`) + "," + change("module.m.metal_deployment.d", `"create"`, "null",
		`{}`, `{"node_id": true}`) + "," +
		change("metal_allocation.a", `"create"`, "null", `{}`, `{}`)
	w, err := planned.Read(plan(changes, `{"root_module": {
		"resources": [`+resource("metal_allocation.a", `"module.m.id", "module.m"`)+`],
		"module_calls": {"m": {"expressions": {"node": {"references": ["metal_host.h.id", "metal_host.h"]}}, "module": {
			"outputs": {"id": {"expression": {"references": ["metal_deployment.d.id", "metal_deployment.d"]}}},
			"resources": [`+resource("metal_deployment.d", `"var.node"`)+`]
		}}}
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	if after := w.Steps[1].After; !slices.Equal(after, []int{0}) {
		t.Errorf("the deployment waits for %v", after)
	}
	if after := w.Steps[2].After; !slices.Contains(after, 1) {
		t.Errorf("the allocation waits for %v", after)
	}
}

func TestRead_providerBlock(t *testing.T) {
	t.Parallel()
	changes := change("metal_host.h", `"create"`, "null", `{}`, `{}`)
	read := func(limit string) (*planned.Work, error) {
		return planned.Read(plan(changes, `{"provider_config": {"metal": {"name": "metal", "expressions": {`+limit+
			`}}}, "root_module": {"resources": [`+resource("metal_host.h", "")+`]}}`))
	}
	for _, tt := range []struct {
		name, expressions string
		max               int
		isMax             bool
		unknown           string
	}{
		{"none", ``, 20, false, ""},
		{"a constant", `"provisioning_limit": {"constant_value": {"max_concurrent": 0}}`, 0, true, ""},
		{"a variable", `"provisioning_limit": {"references": ["var.limit"]}`, 7, true, ""},
		{"a part is a variable", `"provisioning_limit": {"references": ["var.n"]}`, 20, false, "it refers to var.n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, err := read(tt.expressions)
			if err != nil {
				t.Fatal(err)
			}
			if p := w.Provider; p.Limit.Max != tt.max || p.IsMax != tt.isMax || (p.Unknown == "") != (tt.unknown == "") ||
				!strings.Contains(p.Unknown, tt.unknown) {
				t.Errorf("%+v", p)
			}
		})
	}
	two := plan(changes+","+change("metal_host.g", `"create"`, "null", `{}`, `{}`),
		`{"provider_config": {"metal": {}, "metal.b": {}}, "root_module": {"resources": [`+
			resource("metal_host.h", "")+","+strings.Replace(resource("metal_host.g", ""), `_key": "metal"`, `_key": "metal.b"`, 1)+`]}}`)
	if _, err := planned.Read(two); err == nil || !strings.Contains(err.Error(), "several blocks of the provider: metal, metal.b") {
		t.Errorf("the error is %v", err)
	}
}

// What the forecast cannot count is named, and a plan that has failed is refused.
func TestRead_namesWhatIsNotCounted(t *testing.T) {
	t.Parallel()
	const plan = `{"format_version": "1.2", "planned_values": {}, "resource_changes": [], "configuration": {}, %s}`
	for name, tt := range map[string]struct{ more, note, err string }{
		"an action that takes a slot": {
			`"action_invocations": [{"address": "action.metal_clean.all", "type": "metal_clean", "config_values": {"node_id": "r1"}}]`,
			"action.metal_clean.all is not counted, though node r1 takes a slot for it", "",
		},
		"an action of an unknown node": {
			`"action_invocations": [{"address": "action.metal_power.a", "type": "metal_power", "config_values": {"action": "reboot"}}]`,
			"action.metal_power.a is not counted, though node (known after apply) takes a slot for it", "",
		},
		"an action that takes none": {
			`"action_invocations": [{"address": "action.metal_power.a", "type": "metal_power", "config_values": {"node_id": "r1", "action": "soft_off"}}]`,
			"action.metal_power.a of node r1 is not counted: it is an action, and takes no slot", "",
		},
		"another provider's action": {`"action_invocations": [{"address": "action.aws_x.y", "type": "aws_x"}]`, "", ""},
		"deferred": {
			`"complete": false, "deferred_changes": [{"reason": "x", "resource_change": {"address": "metal_host.new"}}]`,
			"metal_host.new is not counted: the plan defers it", "",
		},
		"with -target": {`"complete": false`, "the plan is not complete", ""},
		"failed":       {`"errored": true`, "", "this plan has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := planned.Read(fmt.Appendf(nil, plan, tt.more))
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
			case err != nil:
				t.Fatal(err)
			case !strings.Contains(strings.Join(w.Notes, "; "), tt.note) || tt.note == "" && len(w.Notes) > 0:
				t.Errorf("notes %q, want %q", w.Notes, tt.note)
			}
		})
	}
}
