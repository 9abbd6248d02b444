package framework

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// The keys of private state: two documents in JSON. A document without a value has no key.
const (
	// documentKey holds what the resource has noted: see KeepPrivate.
	documentKey = "resource"
	// serverKey holds the serverNotes.
	serverKey = "server"
)

// LoadPrivate returns the document that a resource has stored in private state. A field that is missing or cannot be read has the zero
// value, as if the resource had noted nothing.
func LoadPrivate[D any](ctx context.Context, private GettablePrivate) D {
	return load[D](ctx, private, documentKey)
}

// KeepPrivate returns the document that a resource has stored in private state, and a function that stores the fields which the caller has
// changed in it. All other fields stay as they are in private state, also those that only a newer version of the provider knows. The caller
// defers that function after it has deferred Finish, so that it runs before: a call that fails or panics leaves what it had noted.
func KeepPrivate[D any](ctx context.Context, private PrivateState, diags *diag.Diagnostics) (document *D, store func()) {
	kept := LoadPrivate[D](ctx, private)
	was := fieldsOf(encode(kept))
	return &kept, func() {
		now := fieldsOf(encode(kept))
		if maps.EqualFunc(was, now, sameField) {
			return
		}
		text, _ := private.GetKey(ctx, documentKey)
		diags.Append(private.SetKey(ctx, documentKey, merge(text, was, now))...)
		was = now
	}
}

// merge returns an encoded document in which the fields that differ between was and now are as they are now. All others stay.
func merge(text []byte, was, now map[string]json.RawMessage) []byte {
	stored := fieldsOf(text)
	for name, value := range now {
		if !sameField(value, was[name]) {
			stored[name] = value
		}
	}
	maps.DeleteFunc(stored, func(name string, _ json.RawMessage) bool { return was[name] != nil && now[name] == nil })
	return encode(stored)
}

// edited returns the encoded notes of the server with a change. Fields that it does not know, or cannot read, stay.
func edited(text []byte, change func(*serverNotes)) []byte {
	noted := decode[serverNotes](text)
	was := fieldsOf(encode(noted))
	change(&noted)
	return merge(text, was, fieldsOf(encode(noted)))
}

func keepNotes(ctx context.Context, private PrivateState, change func(*serverNotes)) diag.Diagnostics {
	text, _ := private.GetKey(ctx, serverKey)
	return private.SetKey(ctx, serverKey, edited(text, change))
}

// fieldsOf returns the fields of an encoded document; none if it cannot be read.
func fieldsOf(text []byte) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		return map[string]json.RawMessage{}
	}
	return fields
}

func sameField(one, other json.RawMessage) bool { return bytes.Equal(one, other) }

// load returns the document at a key. A field that is missing or cannot be read has the zero value; the others have theirs.
func load[D any](ctx context.Context, private GettablePrivate, key string) D {
	text, _ := private.GetKey(ctx, key)
	return decode[D](text)
}

func decode[D any](text []byte) (readable D) {
	var whole D
	if document.Decode(text, &whole) == nil {
		return whole
	}
	for name, value := range fieldsOf(text) {
		var part D
		if one := encode(map[string]json.RawMessage{name: value}); document.Decode(one, &part) == nil {
			_ = document.Decode(one, &readable) // it can be read
		}
	}
	return readable
}

// encode returns a document as JSON; nil if it says nothing. The documents leave out values that are zero.
func encode(document any) []byte {
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // Finish or the server reports it as a bug
	}
	if string(text) == "{}" {
		return nil
	}
	return text
}

// serverNotes are what the provider's server keeps of a resource. PlanSteps and NothingToDecide write into them, too.
type serverNotes struct {
	// Unchanged says that the state needs no change: see NothingToDecide.
	Unchanged bool `json:"unchanged,omitzero"`
	// Conditions are those under which Unchanged holds; nil until the server has seen the answer.
	Conditions *notedConditions `json:"conditions,omitzero"`
	// Applied is the fingerprint of the configuration that was applied last.
	Applied string `json:"applied,omitzero"`
	// Steps are those of a plan, until its apply.
	Steps json.RawMessage `json:"steps,omitzero"`
	// Rights are the least ones with which the resource was seen.
	Rights *api.Rights `json:"rights,omitzero"`
	// Site is the identity of the site in which the resource is: see NoteSite.
	Site string `json:"site,omitzero"`
	// Missing says that the last read has found no record of the resource: see KeepsLost. Idle says that its machine was idle, too.
	Missing bool `json:"missing,omitzero"`
	Idle    bool `json:"idle,omitzero"`
	// Restores says that the plan restores the record that Ironic has lost: see IsRestored.
	Restores bool `json:"restores,omitzero"`
}

// PlanSteps stores the steps that a plan has decided in planned private state, for Update: it executes them, and decides nothing. Terraform
// plans again when it applies, with what is known then, so these are the steps of that plan. The server removes them after the apply.
// A plan that changes nothing stores nothing, so that it leaves private state as it is. Terraform passes no private state to Create.
func PlanSteps[S any](ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, steps []S) {
	if len(steps) == 0 && resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	text, err := json.Marshal(append([]S{}, steps...)) // not null
	if err != nil {
		resp.Diagnostics.AddError("The provider has a bug", err.Error())
		return
	}
	resp.Diagnostics.Append(keepNotes(ctx, resp.Private, func(s *serverNotes) { s.Steps = text })...)
}

// PlannedSteps returns the steps that the plan of an Update has stored. Without them it reports an error: an apply
// must not record what no plan has decided.
func PlannedSteps[S any](ctx context.Context, private GettablePrivate, diags *diag.Diagnostics) (steps []S) {
	text := load[serverNotes](ctx, private, serverKey).Steps
	if err := document.Decode(text, &steps); err != nil || steps == nil {
		diags.AddError("The provider has a bug", "The plan has no steps, so nothing was done. Plan again, and report it if that "+
			"does not help.")
	}
	return steps
}

// Conditions are the facts besides the resource's configuration and state on which the result of a plan depends.
type Conditions struct {
	Provider     string `json:"provider"`     // version of the provider
	OnChange     string `json:"on_change"`    // the default for every deployment
	Drift        string `json:"drift"`        // the default of hardware_drift for every host
	Microversion string `json:"microversion"` // the configured upper bound
	OneView      bool   `json:"oneview"`      // whether an appliance is configured
}

// conditionsVersion is the version of the note. Increase it when the meaning of NothingToDecide changes.
const conditionsVersion = 1

type notedConditions struct {
	Version int `json:"version"`
	Conditions
}

// GettablePrivate is the private state of a request or a response.
type GettablePrivate interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// PrivateState is the private state of a response.
type PrivateState interface {
	GettablePrivate
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// NothingToDecide records that the state which a Read, Create or Update returns needs no change. As long as neither the state nor
// the configuration that was applied last changes, the server plans no change without asking the resource. The methods must call it
// last, and only if ModifyPlan would neither change the plan nor warn, even if a write-only value has changed. The server removes the
// note before each of them, and after one that fails. It also leaves out a Read of a Refresher that has the note and is up to date.
// Create and Update record what the next Read would, because plan -refresh-only takes any difference in private state for drift
// (reference/terraform.md#refresh-only-plans).
func NothingToDecide(ctx context.Context, private PrivateState) diag.Diagnostics {
	return keepNotes(ctx, private, func(s *serverNotes) { s.Unchanged = true })
}

// Private is a resource's private state as the framework encodes it.
type Private []byte

// WithoutNotes returns the private state without the notes of NothingToDecide and of the configuration that was applied last, for an
// operation that changes the resource.
func (p Private) WithoutNotes() Private {
	return p.edit(func(s *serverNotes) {
		s.Unchanged, s.Conditions, s.Applied, s.Missing, s.Idle, s.Restores = false, nil, "", false, false, false
	})
}

// WithoutUnchanged returns the private state without the note of NothingToDecide and the steps of a plan, for a Read, and after an apply
// that fails.
func (p Private) WithoutUnchanged() Private {
	return p.edit(func(s *serverNotes) {
		s.Unchanged, s.Conditions, s.Steps, s.Missing, s.Idle, s.Restores = false, nil, nil, false, false, false
	})
}

// WithConditions returns the private state after a Read, Create or Update. It removes the steps of the plan, and adds the conditions to the
// note of NothingToDecide; with nil it removes the note.
func (p Private) WithConditions(c *Conditions) Private {
	return p.edit(func(s *serverNotes) {
		s.Steps, s.Conditions = nil, nil
		if s.Unchanged = s.Unchanged && c != nil; s.Unchanged {
			s.Conditions = &notedConditions{conditionsVersion, *c}
		}
	})
}

// WithApplied returns the private state after a configuration was applied.
func (p Private) WithApplied(fingerprint string) Private {
	return p.edit(func(s *serverNotes) { s.Applied = fingerprint })
}

// Noted reports whether the note holds under the conditions.
func (p Private) Noted(c Conditions) bool { return p.notes().holds(c) }

// Unchanged reports whether the note holds under the conditions and the configuration is the one that was applied last.
func (p Private) Unchanged(c Conditions, fingerprint string) bool {
	noted := p.notes()
	return fingerprint != "" && noted.Applied == fingerprint && noted.holds(c)
}

// holds reports whether the note of NothingToDecide holds under the conditions.
func (s serverNotes) holds(c Conditions) bool {
	return s.Conditions != nil && *s.Conditions == notedConditions{conditionsVersion, c}
}

func (p Private) notes() serverNotes { return decode[serverNotes](p.values()[serverKey]) }

// GetKey returns the value of a key, as the private state of a request does; nil if there is none.
func (p Private) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return p.values()[key], nil
}

// values returns the entries; nil if the private state has another encoding.
func (p Private) values() map[string][]byte {
	var values map[string][]byte
	if len(p) == 0 || json.Unmarshal(p, &values) != nil {
		return nil
	}
	return values
}

// edit returns a copy with changed notes of the server. It returns private state of another encoding unchanged.
func (p Private) edit(change func(*serverNotes)) Private {
	values := p.values()
	if values == nil && len(p) > 0 {
		return p
	}
	if values == nil {
		values = map[string][]byte{}
	}
	if values[serverKey] = edited(values[serverKey], change); values[serverKey] == nil {
		delete(values, serverKey)
	}
	if len(values) == 0 {
		return nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		return p
	}
	return text
}

type plannedKey struct{}

// WithPlanned returns a context for an apply with the private state that its plan has returned. The framework passes it on to an Update,
// but not to a Create.
func WithPlanned(ctx context.Context, private Private) context.Context {
	return context.WithValue(ctx, plannedKey{}, private)
}

// Planned returns the private state that the plan of this apply has returned; nil if there is none.
func Planned(ctx context.Context) Private {
	private, _ := ctx.Value(plannedKey{}).(Private)
	return private
}
