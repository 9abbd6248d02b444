package core_test

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
)

// disk has an attribute that only a configuration sets, and one that the provider computes.
var disk = []*tfprotov6.SchemaAttribute{
	{Name: "size", Type: tftypes.Number, Optional: true},
	{Name: "path", Type: tftypes.String, Optional: true, Computed: true},
}

// server has an attribute of each sort.
var server = []*tfprotov6.SchemaAttribute{
	{Name: "name", Type: tftypes.String, Required: true},
	{Name: "note", Type: tftypes.String, Optional: true},
	{Name: "id", Type: tftypes.String, Computed: true},
	{Name: "driver", Type: tftypes.String, Optional: true, Computed: true},
	{Name: "secret", Type: tftypes.String, Optional: true, WriteOnly: true},
	{Name: "tags", Type: tftypes.Map{ElementType: tftypes.String}, Optional: true},
	{Name: "root", Optional: true, Computed: true, NestedType: &tfprotov6.SchemaObject{
		Nesting:    tfprotov6.SchemaObjectNestingModeSingle,
		Attributes: disk,
	}},
	{Name: "disks", Optional: true, NestedType: &tfprotov6.SchemaObject{Nesting: tfprotov6.SchemaObjectNestingModeMap, Attributes: disk}},
	{Name: "bays", Optional: true, NestedType: &tfprotov6.SchemaObject{Nesting: tfprotov6.SchemaObjectNestingModeList, Attributes: disk}},
	{Name: "racks", Optional: true, NestedType: &tfprotov6.SchemaObject{
		Nesting:    tfprotov6.SchemaObjectNestingModeSet,
		Attributes: disk[:1],
	}},
}

// serverType is the type of a server in the tables, where what is left out is null.
var (
	diskType   = cty.ObjectWithOptionalAttrs(map[string]cty.Type{"size": cty.Number, "path": cty.String}, []string{"size", "path"})
	rackType   = cty.ObjectWithOptionalAttrs(map[string]cty.Type{"size": cty.Number}, []string{"size"})
	serverType = cty.ObjectWithOptionalAttrs(map[string]cty.Type{
		"name": cty.String, "note": cty.String, "id": cty.String, "driver": cty.String, "secret": cty.String, "tags": cty.Map(cty.String),
		"root": diskType, "disks": cty.Map(diskType), "bays": cty.List(diskType), "racks": cty.Set(rackType),
	}, []string{"name", "note", "id", "driver", "secret", "tags", "root", "disks", "bays", "racks"})
)

// object returns a server as HCL writes it; "null" is none, and unknown is a value that is not known.
func object(t *testing.T, text string) cty.Value {
	t.Helper()
	expression, problems := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatalf("%s: %v", text, problems)
	}
	value, problems := expression.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"unknown": cty.DynamicVal}})
	if problems.HasErrors() {
		t.Fatalf("%s: %v", text, problems)
	}
	made, err := convert.Convert(value, serverType)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return made
}

func TestProposed_mergesStateAndConfigurationAsCore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, prior, config, want string }{
		{"a new object has what is configured", `null`, `{name = "a"}`, `{name = "a"}`},
		{
			"what the provider computes stays", `{name = "a", id = "7", driver = "ipmi"}`, `{name = "b"}`,
			`{name = "b", id = "7", driver = "ipmi"}`,
		},
		{
			"a configured value wins", `{name = "a", driver = "ipmi"}`, `{name = "a", driver = "redfish"}`,
			`{name = "a", driver = "redfish"}`,
		},
		{"what is no longer configured is null", `{name = "a", note = "x"}`, `{name = "a"}`, `{name = "a"}`},
		{"what is not known is not known", `{name = "a", note = "x"}`, `{name = "a", note = unknown}`, `{name = "a", note = unknown}`},
		{"a write-only value is null", `{name = "a"}`, `{name = "a", secret = "s"}`, `{name = "a"}`},
		{
			"a map without a schema is replaced", `{name = "a", tags = {x = "1", y = "2"}}`, `{name = "a", tags = {x = "3"}}`,
			`{name = "a", tags = {x = "3"}}`,
		},
		{
			"in a nested object computed values stay", `{name = "a", root = {size = 1, path = "/dev/sda"}}`,
			`{name = "a", root = {size = 2}}`,
			`{name = "a", root = {size = 2, path = "/dev/sda"}}`,
		},
		{
			"a nested object that was computed stays", `{name = "a", root = {path = "/dev/sda"}}`, `{name = "a"}`,
			`{name = "a", root = {path = "/dev/sda"}}`,
		},
		{"a nested object that was configured goes", `{name = "a", root = {size = 1, path = "/dev/sda"}}`, `{name = "a"}`, `{name = "a"}`},
		{
			"elements of a map are those with the key", `{name = "a", disks = {x = {size = 1, path = "/dev/x"}, y = {path = "/dev/y"}}}`,
			`{name = "a", disks = {x = {size = 2}, z = {size = 3}}}`,
			`{name = "a", disks = {x = {size = 2, path = "/dev/x"}, z = {size = 3}}}`,
		},
		{
			"elements of a list are those at the place", `{name = "a", bays = [{size = 1, path = "/dev/x"}]}`,
			`{name = "a", bays = [{size = 2}, {size = 3}]}`, `{name = "a", bays = [{size = 2, path = "/dev/x"}, {size = 3}]}`,
		},
	} {
		prior, config, want := object(t, tt.prior), object(t, tt.config), object(t, tt.want)
		if got := core.Proposed(server, prior, config); !got.RawEquals(want) {
			t.Errorf("%s: proposed is %#v, want %#v", tt.name, got, want)
		}
	}
}

func TestIncompatible_findsWhatCoreRejectsAfterAnApply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, planned, actual, want string }{
		{"as planned", `{name = "a", id = "7", disks = {x = {size = 1}}}`, `{name = "a", id = "7", disks = {x = {size = 1}}}`, ""},
		{
			"what was not known may be anything", `{name = "a", id = unknown, disks = unknown, root = unknown}`,
			`{name = "a", id = "7", disks = {x = {size = 1}}}`, "",
		},
		{
			"also below", `{name = "a", disks = {x = {size = 1, path = unknown}}}`,
			`{name = "a", disks = {x = {size = 1, path = "/dev/x"}}}`,
			"",
		},
		{"another value", `{name = "a"}`, `{name = "b"}`, `.name: planned "a", now "b"`},
		{"a value in place of null", `{name = "a"}`, `{name = "a", note = "x"}`, `.note: planned null, now "x"`},
		{"null in place of a value", `{name = "a", note = "x"}`, `{name = "a"}`, `.note: planned "x", now null`},
		{"not known in the end", `{name = "a", note = "x"}`, `{name = "a", note = unknown}`, `.note: planned "x", now unknown`},
		{"another value below", `{name = "a", root = {size = 1}}`, `{name = "a", root = {size = 2}}`, `.root.size: planned 1, now 2`},
		{
			"an element less", `{name = "a", tags = {x = "1", y = "2"}}`, `{name = "a", tags = {x = "1"}}`,
			`.tags: planned an element "y", which is gone`,
		},
		{
			"an element more", `{name = "a", tags = {x = "1"}}`, `{name = "a", tags = {x = "1", y = "2"}}`,
			`.tags: planned 1 elements, now 2`,
		},
		{
			"a longer list", `{name = "a", bays = [{size = 1}]}`, `{name = "a", bays = [{size = 1}, {size = 2}]}`,
			`.bays: planned 1 elements, now 2`,
		},
		{
			"another element of a list", `{name = "a", bays = [{size = 1}, {size = 2}]}`, `{name = "a", bays = [{size = 1}, {size = 3}]}`,
			`.bays[1].size: planned 2, now 3`,
		},
		{
			"another set", `{name = "a", racks = [{size = 1}]}`, `{name = "a", racks = [{size = 2}]}`,
			`.racks: planned [{"size":1}], now [{"size":2}]`,
		},
		{
			"the object is gone", `{name = "a"}`, `null`,
			`: planned {"bays":null,"disks":null,"driver":null,"id":null,"name":"a","note":null,"racks":null,"root":null,"secret":null,"tags":null}, now null`,
		},
	} {
		if got := core.Incompatible("", object(t, tt.planned), object(t, tt.actual)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestInvalidPlan_findsWhatCoreRejectsInAPlan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, prior, config, planned, want string }{
		{"as configured", `null`, `{name = "a", tags = {x = "1"}}`, `{name = "a", id = unknown, tags = {x = "1"}}`, ""},
		{
			"computed values are the provider's", `{name = "a", id = "7"}`, `{name = "a"}`,
			`{name = "a", id = "8", driver = unknown, root = {size = 1}}`, "",
		},
		{"the value in the state means the same", `{name = "A"}`, `{name = "a"}`, `{name = "A"}`, ""},
		{"not known in both", `null`, `{name = "a", note = unknown}`, `{name = "a", note = unknown}`, ""},
		{"another value than configured", `{name = "b"}`, `{name = "a"}`, `{name = "c"}`, `.name: configured "a", planned "c"`},
		{
			"another value for an optional and computed one", `null`, `{name = "a", driver = "ipmi"}`, `{name = "a", driver = "redfish"}`,
			`.driver: configured "ipmi", planned "redfish"`,
		},
		{
			"not known in place of a configured value", `null`, `{name = "a"}`, `{name = unknown}`,
			`.name: configured "a", planned (unknown)`,
		},
		{"a value in place of nothing", `null`, `{name = "a"}`, `{name = "a", note = "x"}`, `.note: configured null, planned "x"`},
		{
			"the value in the state in place of nothing", `{name = "a", note = "x"}`, `{name = "a"}`, `{name = "a", note = "x"}`,
			`.note: configured null, planned "x"`,
		},
		{
			"a write-only value in the plan", `null`, `{name = "a", secret = "s"}`, `{name = "a", secret = "s"}`,
			`.secret: a write-only value in the plan`,
		},
		{
			"computed values below", `null`, `{name = "a", disks = {x = {size = 1}}}`,
			`{name = "a", disks = {x = {size = 1, path = unknown}}}`, "",
		},
		{
			"another value in a nested object", `null`, `{name = "a", root = {size = 1}}`, `{name = "a", root = {size = 2}}`,
			`.root.size: configured 1, planned 2`,
		},
		{
			"another value in a map", `null`, `{name = "a", disks = {x = {size = 1}}}`, `{name = "a", disks = {x = {size = 2}}}`,
			`.disks["x"].size: configured 1, planned 2`,
		},
		{
			"another value in a list", `null`, `{name = "a", bays = [{size = 1}]}`, `{name = "a", bays = [{size = 2}]}`,
			`.bays[0].size: configured 1, planned 2`,
		},
		{
			"an element more", `null`, `{name = "a", disks = {x = {size = 1}}}`, `{name = "a", disks = {x = {size = 1}, y = {size = 1}}}`,
			`.disks: configured 1 elements, planned 2`,
		},
		{
			"an element with another key", `null`, `{name = "a", disks = {x = {size = 1}}}`, `{name = "a", disks = {y = {size = 1}}}`,
			`.disks: configured an element "x", which the plan lacks`,
		},
		{
			"another set", `null`, `{name = "a", racks = [{size = 1}]}`, `{name = "a", racks = [{size = 2}]}`,
			`.racks: configured [{"size":1}], planned [{"size":2}]`,
		},
	} {
		if got := core.InvalidPlan("", server, object(t, tt.prior), object(t, tt.config), object(t, tt.planned)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
