// Package state keeps the state of a workspace, in memory and in a file that a CLI can go on with.
package state

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// State is a state of a workspace.
type State struct {
	mu        sync.Mutex
	Serial    int
	Lineage   string
	Outputs   map[string]Output
	Instances map[Address]*Instance
}

// Get returns an instance; nil if there is none.
func (s *State) Get(at Address) *Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Instances[at]
}

// Set records an instance; nil removes it.
func (s *State) Set(at Address, i *Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Instances[at] = i; i == nil {
		delete(s.Instances, at)
	}
}

// Of returns the addresses of the instances of a resource.
func (s *State) Of(resource string) (all []Address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.Instances {
		if at.Resource == resource {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, Compare)
	return all
}

// Clone copies a state. Its instances do not change.
func (s *State) Clone() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &State{Serial: s.Serial, Lineage: s.Lineage, Outputs: maps.Clone(s.Outputs), Instances: maps.Clone(s.Instances)}
}

// SameAs reports whether two states have the same managed instances.
func (s *State) SameAs(other *State, from schema.Providers) bool {
	if len(s.Instances) != len(other.Instances) {
		return false
	}
	for at, i := range s.Instances {
		_, kind := from.Kind(KindName(at.Resource))
		if !i.Decoded(kind).equal(other.Instances[at].Decoded(kind)) {
			return false
		}
	}
	return true
}

// Instance is what Terraform keeps of an instance of a resource.
type Instance struct {
	Value    cty.Value
	Private  []byte
	Identity *tfprotov6.ResourceIdentityData
	Tainted  bool
	After    []string // the addresses of the resources that it depends on

	raw     *stored // what a file has of it, before the provider has upgraded it
	Secrets []cty.Path
}

// ValueOf returns the value of an instance, which may not be upgraded yet.
func (i *Instance) ValueOf(of *schema.Kind) (cty.Value, error) {
	if i.raw == nil {
		return i.Value, nil
	}
	return ctyjson.Unmarshal(i.raw.Attributes, of.Type)
}

// DependingOn returns an instance with further dependencies.
func (i *Instance) DependingOn(more []string) *Instance {
	all := append(slices.Clone(i.After), more...)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		all = nil
	}
	if slices.Equal(all, i.After) {
		return i
	}
	made := *i
	made.After, made.raw = all, nil
	return &made
}

// Stored returns what a state file has of an instance, if the provider has not upgraded that yet.
func (i *Instance) Stored() (version int64, attributes json.RawMessage, is bool) {
	if i.raw == nil {
		return 0, nil, false
	}
	return i.raw.SchemaVersion, i.raw.Attributes, true
}

// Taint returns an instance that is tainted, or not.
func (i *Instance) Taint(is bool) *Instance {
	made := *i
	if made.Tainted = is; made.raw != nil {
		raw := *made.raw
		if raw.Status = ""; is {
			raw.Status = "tainted"
		}
		made.raw = &raw
	}
	return &made
}

// Upgraded returns an instance with the value that the provider has made of what a state file has.
func (i *Instance) Upgraded(value cty.Value) *Instance {
	made := *i
	made.Value, made.raw = value, nil
	return &made
}

// Decoded returns an instance with its value, though it may not be upgraded yet; nil for nil.
func (i *Instance) Decoded(of *schema.Kind) *Instance {
	if i == nil || i.raw == nil {
		return i
	}
	made := *i
	value, err := i.ValueOf(of)
	if made.Value = value; err != nil {
		made.Value = of.Null() // another version
	}
	return &made
}

// equal reports whether two instances are the same, with what the user does not see of them.
func (i *Instance) equal(other *Instance) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i.Value.RawEquals(other.Value) && string(i.Private) == string(other.Private) && i.Tainted == other.Tainted &&
		slices.Equal(i.After, other.After)
}
