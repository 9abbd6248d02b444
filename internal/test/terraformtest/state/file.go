package state

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// Load reads a state file.
func Load(file string, from schema.Providers) (*State, error) {
	s := &State{Instances: map[Address]*Instance{}, Outputs: map[string]Output{}}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		id := make([]byte, 16)
		_, err := rand.Read(id)
		s.Lineage = fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
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
		return nil, core.Unsupported("a state of version %d", all.Version)
	}
	s.Serial, s.Lineage = all.Serial, all.Lineage
	maps.Copy(s.Outputs, all.Outputs)
	for _, r := range all.Resources {
		name := r.Type
		if r.Mode == "data" {
			continue // each plan reads it again
		}
		if _, kind := from.Kind(name); strings.Contains(r.Module, "[") || kind == nil {
			return nil, core.Unsupported("%s.%s in state", r.Type, r.Name)
		}
		if r.Module != "" {
			name = r.Module + "." + name
		}
		for _, i := range r.Instances {
			if i.Deposed != "" || i.CreateFirst {
				return nil, core.Unsupported("create_before_destroy")
			}
			at := Address{Resource: name + "." + r.Name}
			switch key := i.IndexKey.(type) {
			case string:
				at.Key = fmt.Sprintf("[%q]", key)
			case float64:
				at.Key = fmt.Sprintf("[%d]", int(key))
			}
			made := &Instance{Private: i.Private, Tainted: i.Status == "tainted", After: i.Dependencies, raw: &i}
			if len(i.Identity) > 0 && string(i.Identity) != "null" {
				made.Identity = &tfprotov6.ResourceIdentityData{IdentityData: &tfprotov6.DynamicValue{JSON: i.Identity}}
			}
			s.Instances[at] = made
		}
	}
	return s, nil
}

// Save writes a state file, if it changes. data are the instances of data sources by address.
func (s *State) Save(file string, from schema.Providers, data map[Address]cty.Value) error {
	to := storedState{
		Version: 4, Terraform: core.Version, Serial: s.Serial, Lineage: s.Lineage, Outputs: s.Outputs,
		Resources: []storedResource{}, Checks: json.RawMessage("null"),
	}
	resources := map[string]*storedResource{}
	for _, at := range slices.SortedFunc(maps.Keys(s.Instances), Compare) {
		_, kind := from.Kind(KindName(at.Resource))
		made, err := s.Instances[at].store(kind, at)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		addStored(from, resources, at, made)
	}
	for _, at := range slices.SortedFunc(maps.Keys(data), Compare) {
		_, kind := from.Kind(KindName(at.Resource))
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
	s.Serial = to.Serial
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

func addStored(from schema.Providers, to map[string]*storedResource, at Address, i stored) {
	module, of, name := Split(at.Resource)
	p, kind := from.Kind(of)
	if to[at.Resource] == nil {
		mode := "managed"
		if kind.IsData {
			mode = "data"
		}
		to[at.Resource] = &storedResource{
			Module: module, Mode: mode, Type: kind.Name, Name: name, Provider: fmt.Sprintf("provider[%q]", p.Source),
		}
	}
	to[at.Resource].Instances = append(to[at.Resource].Instances, i)
}

type storedState struct {
	Version   int               `json:"version"`
	Terraform string            `json:"terraform_version"`
	Serial    int               `json:"serial"`
	Lineage   string            `json:"lineage"`
	Outputs   map[string]Output `json:"outputs"`
	Resources []storedResource  `json:"resources"`
	Checks    json.RawMessage   `json:"check_results"`
}

type storedResource struct {
	Module    string   `json:"module,omitempty"`
	Mode      string   `json:"mode"`
	Type      string   `json:"type"`
	Name      string   `json:"name"`
	Provider  string   `json:"provider"`
	Instances []stored `json:"instances"`
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

// Output is an output as a state file has it.
type Output struct {
	Value     json.RawMessage `json:"value"`
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// Decode decodes an output.
func (o Output) Decode() (cty.Value, error) {
	of, err := ctyjson.UnmarshalType(o.Type)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(o.Value, of)
}

// store returns what a file has of an instance.
func (i *Instance) store(kind *schema.Kind, at Address) (stored, error) {
	if i.raw != nil {
		return *i.raw, nil
	}
	attributes, err := ctyjson.Marshal(i.Value, kind.Type)
	if err != nil {
		return stored{}, err
	}
	made := stored{
		SchemaVersion: kind.Version, Attributes: attributes, Sensitive: storedPaths(i.Secrets), Private: i.Private,
		Dependencies: i.After,
	}
	if i.Tainted {
		made.Status = "tainted"
	}
	if i.Identity != nil && i.Identity.IdentityData != nil {
		zero := int64(0)
		made.Identity, err = IdentityJSON(i.Identity.IdentityData)
		made.IdentityOf = &zero
	}
	if key := at.KeyValue(); key != cty.NilVal {
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
				steps = append(steps, map[string]any{"type": "index", "value": map[string]any{
					"value": json.RawMessage(key),
					"type":  step.Key.Type().FriendlyName(),
				}})
			}
		}
		all = append(all, steps)
	}
	text, _ := json.Marshal(all) // texts and numbers
	return text
}

// IdentityJSON writes an identity, whose type is not needed for that.
func IdentityJSON(of *tfprotov6.DynamicValue) (json.RawMessage, error) {
	if len(of.JSON) > 0 {
		return of.JSON, nil
	}
	return msgpackJSON(of.MsgPack)
}

// msgpackJSON converts an object of simple values.
func msgpackJSON(text []byte) (json.RawMessage, error) {
	var values map[string]any
	if err := msgpack.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	return json.Marshal(values)
}
