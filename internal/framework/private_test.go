package framework

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// testSchema has a write-only attribute at each kind of place.
var testSchema = &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
	{Name: "name", Type: tftypes.String, Optional: true},
	{Name: "secrets", Type: tftypes.Map{ElementType: tftypes.String}, Optional: true, WriteOnly: true},
	{Name: "bmc", Optional: true, NestedType: &tfprotov6.SchemaObject{
		Nesting:    tfprotov6.SchemaObjectNestingModeSingle,
		Attributes: secretAndUser,
	}},
	{Name: "users", Optional: true, NestedType: &tfprotov6.SchemaObject{
		Nesting:    tfprotov6.SchemaObjectNestingModeMap,
		Attributes: secretAndUser,
	}},
}}}

var secretAndUser = []*tfprotov6.SchemaAttribute{
	{Name: "user", Type: tftypes.String, Optional: true}, {Name: "secret", Type: tftypes.String, Optional: true, WriteOnly: true},
}

var (
	object  = tftypes.Object{AttributeTypes: map[string]tftypes.Type{"user": tftypes.String, "secret": tftypes.String}}
	stringM = tftypes.Map{ElementType: tftypes.String}
)

// configuration is one of the schema; nil is null, and "?" unknown.
func configuration(t *testing.T, name, user, secret any, keys ...string) []byte {
	t.Helper()
	text := func(v any) tftypes.Value {
		if v == "?" {
			v = tftypes.UnknownValue
		}
		return tftypes.NewValue(tftypes.String, v)
	}
	inside := tftypes.NewValue(object, map[string]tftypes.Value{"user": text(user), "secret": text(secret)})
	secrets := map[string]tftypes.Value{}
	for _, key := range keys {
		secrets[key] = text(secret)
	}
	kind := testSchema.ValueType()
	d, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, map[string]tftypes.Value{
		"name": text(name), "bmc": inside, "secrets": tftypes.NewValue(stringM, secrets),
		"users": tftypes.NewValue(tftypes.Map{ElementType: object}, map[string]tftypes.Value{"a": inside}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return d.MsgPack
}

func TestAFingerprintTellsConfigurationsApart(t *testing.T) {
	t.Parallel()
	f := NewFingerprints(testSchema)
	base := f.Of(configuration(t, "n", "u", "s", "k"))
	for name, tt := range map[string]struct {
		config []byte
		same   bool
	}{
		"the same":             {configuration(t, "n", "u", "s", "k"), true},
		"another secret":       {configuration(t, "n", "u", "another", "k"), true},
		"no secret":            {configuration(t, "n", "u", nil, "k"), false},
		"an unknown secret":    {configuration(t, "n", "u", "?", "k"), false},
		"another name":         {configuration(t, "m", "u", "s", "k"), false},
		"no name":              {configuration(t, nil, "u", "s", "k"), false},
		"another user":         {configuration(t, "n", "v", "s", "k"), false},
		"another secret's key": {configuration(t, "n", "u", "s", "l"), false},
	} {
		if got := f.Of(tt.config); (got == base) != tt.same || got == "" {
			t.Errorf("%s: fingerprint %q beside %q, want the same: %v", name, got, base, tt.same)
		}
	}
}

func TestWhatCannotBeReadHasNoFingerprint(t *testing.T) {
	t.Parallel()
	config := configuration(t, "n", "u", "s", "k")
	blocks := *testSchema.Block
	blocks.BlockTypes = []*tfprotov6.SchemaNestedBlock{{TypeName: "b"}}
	for name, got := range map[string]string{
		"no schema": NewFingerprints(nil).Of(config), "blocks": NewFingerprints(&tfprotov6.Schema{Block: &blocks}).Of(config),
		"nothing": NewFingerprints(testSchema).Of(nil), "half a configuration": NewFingerprints(testSchema).Of(config[:len(config)/2]),
	} {
		if got != "" {
			t.Errorf("%s has the fingerprint %q", name, got)
		}
	}
}

// noted is the document of a resource.
type noted struct {
	At      time.Time `json:"at,omitzero"`
	Managed []string  `json:"managed,omitzero"`
	Node    string    `json:"node,omitzero"`
}

// responsePrivate is the private state of a response.
type responsePrivate map[string][]byte

func (p responsePrivate) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return p[key], nil
}

func (p responsePrivate) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	if p[key] = value; len(value) == 0 {
		delete(p, key)
	}
	return nil
}

func (p responsePrivate) private(t *testing.T) Private {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keep returns private state with a document.
func keep(t *testing.T, document noted) responsePrivate {
	t.Helper()
	private, diags := responsePrivate{}, diag.Diagnostics{}
	kept, store := KeepPrivate[noted](t.Context(), private, &diags)
	*kept = document
	if store(); diags.HasError() {
		t.Fatal(diags)
	}
	return private
}

// A call stores what it has noted, also if it panics, and nothing else: neither what it has not changed, nor what it does not know. A
// document that says nothing, or nothing new, changes nothing.
func TestKeepPrivate_storesWhatACallHasNoted(t *testing.T) {
	t.Parallel()
	const before = `{"node":"n1"}`
	for name, tt := range map[string]struct {
		was, want string
		change    func(*noted)
	}{
		"nothing":                  {"", "", func(*noted) {}},
		"nothing new":              {` { "node" : "n1" } `, ` { "node" : "n1" } `, func(*noted) {}},
		"a first value":            {"", before, func(n *noted) { n.Node = "n1" }},
		"a value more":             {before, `{"managed":["a"],"node":"n1"}`, func(n *noted) { n.Managed = []string{"a"} }},
		"an empty list":            {before, `{"managed":[],"node":"n1"}`, func(n *noted) { n.Managed = []string{} }},
		"the last value is gone":   {before, "", func(n *noted) { n.Node = "" }},
		"a newer version":          {`{"more":1,"node":"n1"}`, `{"more":1,"node":"n2"}`, func(n *noted) { n.Node = "n2" }},
		"the same, last value":     {`{"more":1,"node":"n1"}`, `{"more":1}`, func(n *noted) { n.Node = "" }},
		"a field of another type":  {`{"managed":"a","node":"n1"}`, `{"managed":"a","node":"n1+"}`, func(n *noted) { n.Node += "+" }},
		"nothing that can be read": {`["a"]`, before, func(n *noted) { n.Node = "n1" }},
		"null":                     {"null", before, func(n *noted) { n.Node = "n1" }},
		"before a panic":           {"", before, func(n *noted) { n.Node = "n1"; panic("a bug") }},
	} {
		private, diags := responsePrivate{"another": []byte("1")}, diag.Diagnostics{}
		private.SetKey(t.Context(), documentKey, []byte(tt.was))
		func() {
			defer func() { _ = recover() }()
			kept, store := KeepPrivate[noted](t.Context(), private, &diags)
			defer store()
			tt.change(kept)
		}()
		document, has := private[documentKey]
		if string(document) != tt.want || has != (tt.want != "") || len(diags) > 0 || private["another"] == nil {
			t.Errorf("%s: private state is %s, %v; want the document %s", name, private.private(t), diags, tt.want)
		}
	}
}

// A field that cannot be read is like one that is missing. It takes no other with it.
func TestLoadPrivate_leavesOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]noted{
		"":                                   {},
		"null":                               {},
		`{"node":"n1`:                        {},
		`["n1"]`:                             {},
		`{"managed":["a",1],"node":"n1"}`:    {Node: "n1"},
		`{"at":"yesterday","node":"n1"}`:     {Node: "n1"},
		`{"more":{"node":"n2"},"node":"n1"}`: {Node: "n1"},
	} {
		if got := LoadPrivate[noted](t.Context(), responsePrivate{documentKey: []byte(text)}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// Two functions of one call may each keep the document: neither takes back what the other has noted.
func TestKeepPrivate_twoAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	private, diags := keep(t, noted{Node: "n1"}), diag.Diagnostics{}
	one, storeOne := KeepPrivate[noted](t.Context(), private, &diags)
	other, storeOther := KeepPrivate[noted](t.Context(), private, &diags)
	one.Managed, other.Node = []string{"a"}, ""
	storeOne()
	storeOther()
	one.Managed = nil
	storeOne()
	if len(private) > 0 || len(diags) > 0 {
		t.Errorf("private state is %s, %v", private.private(t), diags)
	}
}

func TestTheNoteHoldsUnderItsConditionsOnly(t *testing.T) {
	t.Parallel()
	now := Conditions{Provider: "1.0.0", OnChange: "rebuild", Microversion: "1.82"}
	unseen := keep(t, noted{Managed: []string{}})
	if diags := NothingToDecide(t.Context(), unseen); diags.HasError() {
		t.Fatal(diags)
	}
	read := unseen.private(t).WithApplied("f").WithConditions(&now)
	for name, tt := range map[string]struct {
		private     Private
		conditions  Conditions
		fingerprint string
		want        bool
	}{
		"as noted":              {read, now, "f", true},
		"another configuration": {read, now, "g", false},
		"no fingerprint":        {read.WithApplied(""), now, "", false},
		"another version":       {read, Conditions{Provider: "1.0.1", OnChange: "rebuild", Microversion: "1.82"}, "f", false},
		"another on_change":     {read, Conditions{Provider: "1.0.0", OnChange: "ignore", Microversion: "1.82"}, "f", false},
		"another microversion":  {read, Conditions{Provider: "1.0.0", OnChange: "rebuild", Microversion: "1.81"}, "f", false},
		"an appliance": {
			read,
			Conditions{Provider: "1.0.0", OnChange: "rebuild", Microversion: "1.82", OneView: true},
			"f",
			false,
		},
		"before a read":              {read.WithoutUnchanged(), now, "f", false},
		"before an apply":            {read.WithoutNotes(), now, "f", false},
		"conditions are not known":   {read.WithConditions(nil), now, "f", false},
		"the server has not seen it": {unseen.private(t).WithApplied("f"), now, "f", false},
		"nothing":                    {nil, now, "f", false},
		"another encoding":           {Private(`[]`), now, "f", false},
	} {
		if got := tt.private.Unchanged(tt.conditions, tt.fingerprint); got != tt.want {
			t.Errorf("%s: unchanged = %v, want %v", name, got, tt.want)
		}
	}
	for _, left := range []Private{read.WithoutNotes(), read.WithoutUnchanged()} {
		if LoadPrivate[noted](t.Context(), left).Managed == nil {
			t.Errorf("%s has lost what the resource has noted", left)
		}
	}
}

// The steps of a plan are gone after its apply and after a refresh, so that no later apply executes them, and no refresh shows drift.
func TestPlannedStepsLastUntilTheApply(t *testing.T) {
	t.Parallel()
	var before Private
	planned := before.edit(func(s *serverNotes) { s.Steps = []byte(`["rename","release"]`) })
	var diags diag.Diagnostics
	if got := PlannedSteps[string](t.Context(), planned.WithoutNotes(), &diags); len(got) != 2 || diags.HasError() {
		t.Errorf("Update is given %v, %v", got, diags)
	}
	for name, after := range map[string]Private{
		"apply":                   planned.WithConditions(nil),
		"failed apply or refresh": planned.WithoutUnchanged(),
	} {
		var diags diag.Diagnostics
		if got := PlannedSteps[string](t.Context(), after, &diags); len(got) != 0 || !diags.HasError() {
			t.Errorf("after the %s, there are the steps %v, and the errors %v", name, got, diags)
		}
	}
}

// What a newer version of the provider has noted for its server stays, as long as this one changes other notes.
func TestPrivate_keepsNotesOfANewerVersion(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(map[string][]byte{serverKey: []byte(`{"more":1,"rights":2,"steps":["a"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	after := Private(text).WithoutUnchanged().WithApplied("f")
	if got, want := string(after.values()[serverKey]), `{"applied":"f","more":1,"rights":2}`; got != want {
		t.Errorf("the notes are %s, want %s", got, want)
	}
	private := responsePrivate{serverKey: []byte(`{"more":1}`)}
	if diags := NothingToDecide(t.Context(), private); diags.HasError() || string(private[serverKey]) != `{"more":1,"unchanged":true}` {
		t.Errorf("the notes are %s, %v", private[serverKey], diags)
	}
}

// An Update without the steps of its plan records nothing as applied.
func TestPlannedSteps_missingOrDamagedIsAnError(t *testing.T) {
	t.Parallel()
	for text, fails := range map[string]bool{"": true, "null": true, "{": true, "[]": false, `["rename"]`: false} {
		private := responsePrivate{serverKey: []byte(`{"steps":` + text + `}`)}
		var diags diag.Diagnostics
		if PlannedSteps[string](t.Context(), private, &diags); diags.HasError() != fails {
			t.Errorf("%q: %v", text, diags)
		}
	}
}
