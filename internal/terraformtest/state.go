package terraformtest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Version is the version of Terraform that this package behaves as.
const Version = "1.11.4"

// address is the address of an instance of a resource. key is empty, or [1], or ["a"].
type address struct{ resource, key string }

func (a address) String() string { return a.resource + a.key }

// parseAddress splits an address of an instance.
func parseAddress(text string) address {
	resource, key, found := strings.Cut(text, "[")
	if !found {
		return address{resource: resource}
	}
	return address{resource, "[" + key}
}

// keyOf writes a key of count or for_each.
func keyOf(value cty.Value) string {
	if value.Type() == cty.String {
		return fmt.Sprintf("[%q]", value.AsString())
	}
	n, _ := value.AsBigFloat().Int64()
	return fmt.Sprintf("[%d]", n)
}

// value returns the key as a value; cty.NilVal if there is none.
func (a address) value() cty.Value {
	inner := strings.TrimSuffix(strings.TrimPrefix(a.key, "["), "]")
	if text, err := strconv.Unquote(inner); err == nil {
		return cty.StringVal(text)
	}
	n, err := strconv.Atoi(inner)
	if err != nil {
		return cty.NilVal
	}
	return cty.NumberIntVal(int64(n))
}

// compareAddresses sorts instances as a CLI does: those of a count by number.
func compareAddresses(a, b address) int {
	if a.resource != b.resource || len(a.key) == len(b.key) {
		return strings.Compare(a.String(), b.String())
	}
	if strings.HasPrefix(a.key, `["`) {
		return strings.Compare(a.key, b.key)
	}
	return len(a.key) - len(b.key)
}

// Instance is what Terraform keeps of an instance of a resource.
type Instance struct {
	Value    cty.Value
	Private  []byte
	Identity *tfprotov6.ResourceIdentityData
	Tainted  bool
	After    []string // the addresses of the resources that it depends on

	raw     *stored // what a file has of it, before the provider has upgraded it
	secrets []cty.Path
}

// state is a state of a workspace.
type state struct {
	mu        sync.Mutex
	serial    int
	lineage   string
	outputs   map[string]storedOutput
	instances map[address]*Instance
}

// stored is an instance in a file.
type stored struct {
	IndexKey      any             `json:"index_key,omitempty"`
	Status        string          `json:"status,omitempty"`
	Deposed       string          `json:"deposed,omitempty"`
	SchemaVersion int64           `json:"schema_version"`
	Attributes    json.RawMessage `json:"attributes,omitempty"`
	Sensitive     json.RawMessage `json:"sensitive_attributes"`
	IdentityOf    *int64          `json:"identity_schema_version,omitempty"`
	Identity      json.RawMessage `json:"identity,omitempty"`
	Private       []byte          `json:"private,omitempty"`
	Dependencies  []string        `json:"dependencies,omitempty"`
	CreateFirst   bool            `json:"create_before_destroy,omitempty"`
}

type storedOutput struct {
	Value     json.RawMessage `json:"value"`
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

type storedResource struct {
	Module    string   `json:"module,omitempty"`
	Mode      string   `json:"mode"`
	Type      string   `json:"type"`
	Name      string   `json:"name"`
	Provider  string   `json:"provider"`
	Instances []stored `json:"instances"`
}

type storedState struct {
	Version   int                     `json:"version"`
	Terraform string                  `json:"terraform_version"`
	Serial    int                     `json:"serial"`
	Lineage   string                  `json:"lineage"`
	Outputs   map[string]storedOutput `json:"outputs"`
	Resources []storedResource        `json:"resources"`
	Checks    json.RawMessage         `json:"check_results"`
}

// loadState reads a state file.
func loadState(file string, from Providers) (*state, error) {
	s := &state{instances: map[address]*Instance{}, outputs: map[string]storedOutput{}}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		id := make([]byte, 16)
		_, err := rand.Read(id)
		s.lineage = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
		return s, err
	}
	var all storedState
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, err
	}
	if all.Version != 4 {
		return nil, unsupported("a state of version %d", all.Version)
	}
	s.serial, s.lineage = all.Serial, all.Lineage
	maps.Copy(s.outputs, all.Outputs)
	for _, r := range all.Resources {
		name := r.Type
		if r.Mode == "data" {
			continue // each plan reads it again
		}
		if _, kind := from.kind(name); r.Module != "" || kind == nil {
			return nil, unsupported("%s.%s in state", r.Type, r.Name)
		}
		for _, i := range r.Instances {
			if i.Deposed != "" || i.CreateFirst {
				return nil, unsupported("create_before_destroy")
			}
			at := address{resource: name + "." + r.Name}
			switch key := i.IndexKey.(type) {
			case string:
				at.key = fmt.Sprintf("[%q]", key)
			case float64:
				at.key = fmt.Sprintf("[%d]", int(key))
			}
			made := &Instance{Private: i.Private, Tainted: i.Status == "tainted", After: i.Dependencies, raw: &i}
			if len(i.Identity) > 0 && string(i.Identity) != "null" {
				made.Identity = &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{JSON: i.Identity}}
			}
			s.instances[at] = made
		}
	}
	return s, nil
}

// save writes a state file, if it changes. data are the instances of data sources by address.
func (s *state) save(file string, from Providers, data map[address]cty.Value) error {
	to := storedState{Version: 4, Terraform: Version, Serial: s.serial, Lineage: s.lineage, Outputs: s.outputs, Resources: []storedResource{}, Checks: json.RawMessage("null")}
	resources := map[string]*storedResource{}
	for _, at := range slices.SortedFunc(maps.Keys(s.instances), compareAddresses) {
		_, kind := from.kind(kindName(at.resource))
		made, err := s.instances[at].store(kind, at)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		addStored(from, resources, at, made)
	}
	for _, at := range slices.SortedFunc(maps.Keys(data), compareAddresses) {
		_, kind := from.kind(kindName(at.resource))
		made, err := (&Instance{Value: data[at]}).store(kind, at)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		addStored(from, resources, at, made)
	}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		to.Resources = append(to.Resources, *resources[name])
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if same(old, to) {
		return nil
	}
	to.Serial++
	s.serial = to.Serial
	content, err := json.MarshalIndent(to, "", "  ")
	if err != nil {
		return err
	}
	if len(old) > 0 {
		if err := os.WriteFile(file+".backup", old, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(file, append(content, '\n'), 0o600)
}

// same reports whether a file has a state already.
func same(file []byte, now storedState) bool {
	if len(file) == 0 {
		return len(now.Resources) == 0 && len(now.Outputs) == 0
	}
	var before, after storedState
	text, err := json.Marshal(now)
	if err != nil || json.Unmarshal(file, &before) != nil || json.Unmarshal(text, &after) != nil {
		return false
	}
	compact := func(s storedState) []byte {
		s.Terraform = ""
		text, _ := json.Marshal(s) // it was JSON a moment ago
		return text
	}
	return string(compact(before)) == string(compact(after))
}

func addStored(from Providers, to map[string]*storedResource, at address, i stored) {
	p, kind := from.kind(kindName(at.resource))
	if to[at.resource] == nil {
		mode := "managed"
		if kind.isData {
			mode = "data"
		}
		to[at.resource] = &storedResource{Mode: mode, Type: kind.name, Name: at.resource[strings.LastIndex(at.resource, ".")+1:], Provider: fmt.Sprintf("provider[%q]", p.Source)}
	}
	to[at.resource].Instances = append(to[at.resource].Instances, i)
}

// kindName returns the kind of a resource.
func kindName(resource string) string { return resource[:strings.LastIndex(resource, ".")] }

// store returns what a file has of an instance.
func (i *Instance) store(kind *Kind, at address) (stored, error) {
	if i.raw != nil {
		return *i.raw, nil
	}
	attributes, err := ctyjson.Marshal(i.Value, kind.Type)
	if err != nil {
		return stored{}, err
	}
	made := stored{SchemaVersion: kind.Version, Attributes: attributes, Sensitive: storedPaths(i.secrets), Private: i.Private, Dependencies: i.After}
	if i.Tainted {
		made.Status = "tainted"
	}
	if i.Identity != nil && i.Identity.IdentityData != nil {
		zero := int64(0)
		made.Identity, err = identityJSON(i.Identity.IdentityData)
		made.IdentityOf = &zero
	}
	if key := at.value(); key != cty.NilVal {
		if key.Type() == cty.String {
			made.IndexKey = key.AsString()
		} else {
			made.IndexKey, _ = key.AsBigFloat().Int64()
		}
	}
	return made, err
}

// storedPaths writes the paths of values that are sensitive because the configuration says so.
func storedPaths(paths []cty.Path) json.RawMessage {
	all := [][]any{}
	for _, path := range paths {
		var steps []any
		for _, step := range path {
			switch step := step.(type) {
			case cty.GetAttrStep:
				steps = append(steps, map[string]any{"type": "get_attr", "value": step.Name})
			case cty.IndexStep:
				key, _ := ctyjson.Marshal(ctyjson.SimpleJSONValue{Value: step.Key}.Value, step.Key.Type())
				steps = append(steps, map[string]any{"type": "index", "value": map[string]any{"value": json.RawMessage(key), "type": step.Key.Type().FriendlyName()}})
			}
		}
		all = append(all, steps)
	}
	text, _ := json.Marshal(all) // texts and numbers
	return text
}

// identityJSON writes an identity, whose type is not needed for that.
func identityJSON(of *tfprotov6.DynamicValue) (json.RawMessage, error) {
	if len(of.JSON) > 0 {
		return of.JSON, nil
	}
	return msgpackJSON(of.MsgPack)
}

// get returns an instance; nil if there is none.
func (s *state) get(at address) *Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instances[at]
}

// set records an instance; nil removes it.
func (s *state) set(at address, i *Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instances[at] = i; i == nil {
		delete(s.instances, at)
	}
}

// of returns the addresses of the instances of a resource.
func (s *state) of(resource string) (all []address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.instances {
		if at.resource == resource {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, compareAddresses)
	return all
}

// clone copies a state. Its instances do not change.
func (s *state) clone() *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &state{serial: s.serial, lineage: s.lineage, outputs: maps.Clone(s.outputs), instances: maps.Clone(s.instances)}
}

// equal reports whether two instances are the same, with what the user does not see of them.
func (i *Instance) equal(other *Instance) bool {
	if i == nil || other == nil {
		return i == other
	}
	return i.Value.RawEquals(other.Value) && string(i.Private) == string(other.Private) && i.Tainted == other.Tainted && slices.Equal(i.After, other.After)
}
