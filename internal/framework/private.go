package framework

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// Keys of private state. The provider's server reads and writes both. Only NothingToDecide writes a first value of unchangedKey
// through the framework.
const (
	// unchangedKey holds the Conditions under which a plan of the same configuration is empty.
	unchangedKey = "unchanged"
	// appliedKey holds the fingerprint of the configuration that was applied last.
	appliedKey = "applied"
	// stepsKey holds the steps of a plan, from the plan until its apply.
	stepsKey = "steps"
)

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
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, stepsKey, text)...)
}

// PlannedSteps returns the steps that the plan of an Update has stored. Without them it reports an error: an apply
// must not record what no plan has decided.
func PlannedSteps[S any](ctx context.Context, private GettablePrivate, diags *diag.Diagnostics) (steps []S) {
	text, problems := private.GetKey(ctx, stepsKey)
	diags.Append(problems...)
	if err := json.Unmarshal(text, &steps); err != nil || steps == nil {
		diags.AddError("The provider has a bug", "The plan has no steps, so nothing was done. Plan again, and report it if that does not help.")
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

// unchangedVersion is the version of the note. Increase it when the meaning of NothingToDecide changes.
const unchangedVersion = 1

// note returns the value of unchangedKey. The server compares its bytes.
func (c Conditions) note() []byte {
	text, _ := json.Marshal(struct { // strings and booleans can always be encoded
		Version int `json:"version"`
		Conditions
	}{unchangedVersion, c})
	return text
}

// GettablePrivate is the private state of a request or a response.
type GettablePrivate interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// SettablePrivate is the private state that a response returns.
type SettablePrivate interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// PrivateState is the private state of a response.
type PrivateState interface {
	GettablePrivate
	SettablePrivate
}

// NothingToDecide records that the state which a Read, Create or Update returns needs no change. As long as neither the state nor
// the configuration that was applied last changes, the server plans no change without asking the resource. The methods must call it
// last, and only if ModifyPlan would neither change the plan nor warn, even if a write-only value has changed. The server removes the
// note before each of them, and after one that fails. It also leaves out a Read of a Refresher that has the note and is up to date.
// Create and Update record what the next Read would, because plan -refresh-only takes any difference in private state for drift
// (reference/terraform.md#refresh-only-plans).
func NothingToDecide(ctx context.Context, private SettablePrivate) diag.Diagnostics {
	return private.SetKey(ctx, unchangedKey, []byte("true"))
}

// Private is a resource's private state as the framework encodes it.
type Private []byte

// WithoutNotes returns the private state without both notes, for an operation that changes the resource.
func (p Private) WithoutNotes() Private {
	return p.edit(func(values map[string][]byte) {
		delete(values, unchangedKey)
		delete(values, appliedKey)
	})
}

// WithoutUnchanged returns the private state without the note of NothingToDecide and the steps of a plan, for a Read, and after an apply
// that fails.
func (p Private) WithoutUnchanged() Private {
	return p.edit(func(values map[string][]byte) {
		delete(values, unchangedKey)
		delete(values, stepsKey)
	})
}

// WithConditions returns the private state after a Read, Create or Update. It removes the steps of the plan, and adds the conditions to the
// note of NothingToDecide; with nil it removes the note.
func (p Private) WithConditions(c *Conditions) Private {
	return p.edit(func(values map[string][]byte) {
		delete(values, stepsKey)
		switch _, noted := values[unchangedKey]; {
		case noted && c != nil:
			values[unchangedKey] = c.note()
		default:
			delete(values, unchangedKey)
		}
	})
}

// WithApplied returns the private state after a configuration was applied.
func (p Private) WithApplied(fingerprint string) Private {
	return p.edit(func(values map[string][]byte) {
		values[appliedKey], _ = json.Marshal(fingerprint) // a string can always be encoded
	})
}

// Noted reports whether the note holds under the conditions.
func (p Private) Noted(c Conditions) bool {
	return string(p.values()[unchangedKey]) == string(c.note())
}

// GetKey returns the value of a key, as the private state of a request does; nil if there is none.
func (p Private) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return p.values()[key], nil
}

// Unchanged reports whether the note holds under the conditions and the configuration is the one that was applied last.
func (p Private) Unchanged(c Conditions, fingerprint string) bool {
	values := p.values()
	var applied string
	if json.Unmarshal(values[appliedKey], &applied) != nil || fingerprint == "" {
		return false
	}
	return applied == fingerprint && string(values[unchangedKey]) == string(c.note())
}

// values returns the entries; nil if the private state has another encoding.
func (p Private) values() map[string][]byte {
	var values map[string][]byte
	if len(p) == 0 || json.Unmarshal(p, &values) != nil {
		return nil
	}
	return values
}

// edit returns a changed copy. It returns private state of another encoding unchanged.
func (p Private) edit(change func(map[string][]byte)) Private {
	values := p.values()
	if values == nil && len(p) > 0 {
		return p
	}
	if values == nil {
		values = map[string][]byte{}
	}
	change(values)
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
