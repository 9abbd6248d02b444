// Package lock keeps what machines of a model have in common in a file that people review: hardware.lock.json.
package lock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
)

// File has the models by their product.
type File map[string]hardware.Model

// Parse reads a lock file. An empty one has no model.
func Parse(text []byte) (File, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return File{}, nil
	}
	var models map[string]json.RawMessage
	if err := json.Unmarshal(text, &models); err != nil {
		return nil, fmt.Errorf("it must be an object of models: %w", err)
	}
	file := File{}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		model, err := hardware.Parse(models[name])
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", name, err)
		}
		file[name] = model
	}
	return file, nil
}

// counted matches parts of a kind over several lines.
var counted = regexp.MustCompile(`\{\s+("count": \d+[^{}]*?)\s+\}`)

// Encode writes the file in its one form: models, settings and components sorted, and one line a fact.
func (f File) Encode() ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if err := to.Encode(f); err != nil {
		return nil, err
	}
	return counted.ReplaceAllFunc(text.Bytes(), func(part []byte) []byte {
		return []byte("{" + strings.Join(strings.Fields(string(counted.FindSubmatch(part)[1])), " ") + "}")
	}), nil
}

// Machine is a machine with its hardware.
type Machine struct {
	hardware.Machine

	NodeID, NodeName string
}

// label names a machine.
func (m Machine) label() string {
	return ironic.NodeArgument(&ironic.Node{UUID: m.NodeID, Name: m.NodeName})
}

// Read reads the hardware of nodes, as far as the models of a file compare it; nil: all of it. It returns them in the order of their names.
func Read(ctx context.Context, client *ironic.Client, nodes []ironic.Node, file File) ([]Machine, error) {
	wanted := hardware.Everything
	if file != nil {
		wanted = hardware.Model{}
		for _, model := range file {
			wanted = wanted.With(model)
		}
	}
	all := make([]Machine, len(nodes))
	for i, node := range nodes {
		found, err := hardware.Look(ctx, client, node.UUID, wanted)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", ironic.NodeLabel(&node), err)
		}
		all[i] = Machine{found, node.UUID, node.Name}
	}
	slices.SortFunc(all, func(a, b Machine) int { return strings.Compare(a.label(), b.label()) })
	return all, nil
}

// Uncommon is a fact that differs among machines of a model, so that the file lacks it.
type Uncommon struct {
	Model  string              `json:"model"`
	Fact   string              `json:"fact"`
	Values map[string][]string `json:"values"` // machines by value
}

// String counts the machines with each value, the most first, and names few machines.
func (u Uncommon) String() string {
	values := slices.Sorted(maps.Keys(u.Values))
	slices.SortStableFunc(values, func(a, b string) int { return len(u.Values[b]) - len(u.Values[a]) })
	var texts []string
	for _, value := range values {
		names := strings.Join(u.Values[value], ", ")
		if n := len(u.Values[value]); n > fewNames {
			names = fmt.Sprintf("%d machines", n)
		}
		texts = append(texts, fmt.Sprintf("%q (%s)", value, names))
	}
	return fmt.Sprintf("%s: %s differs, and is left out: %s", u.Model, u.Fact, strings.Join(texts, ", "))
}

const fewNames = 3

// With returns the file with what the machines of each model have in common, and what they have not. A fact of the file stays as it is
// written if all of them still have it, and so does a model of which there is none. Machines without a product belong to no model.
func (f File) With(machines []Machine) (now File, differ []Uncommon) {
	now = maps.Clone(f)
	if now == nil {
		now = File{}
	}
	models := map[string][]Machine{}
	for _, m := range machines {
		if m.Product != "" {
			models[m.Product] = append(models[m.Product], m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		model, uncommon := common(name, f[name], models[name])
		now[name] = model
		differ = append(differ, uncommon...)
	}
	return now, differ
}

func common(name string, before hardware.Model, all []Machine) (model hardware.Model, differ []Uncommon) {
	candidates := map[string][]hardware.Model{}
	for fact, value := range before.Facts() {
		candidates[fact] = append(candidates[fact], value)
	}
	for _, m := range all {
		for fact, value := range m.Facts() {
			candidates[fact] = append(candidates[fact], value)
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(candidates)) {
		fits := func(value hardware.Model) bool {
			return !slices.ContainsFunc(all, func(m Machine) bool { return len(value.Differences(m.Machine)) > 0 })
		}
		at := slices.IndexFunc(candidates[fact], fits)
		if at >= 0 {
			model = model.With(candidates[fact][at])
			continue
		}
		if number := numberOf(candidates[fact][0].NICs); fact == "nics" && fits(number) { // a speed may be that of a slow switch
			model = model.With(number)
		}
		one := Uncommon{name, fact, map[string][]string{}}
		for _, m := range all {
			if value, known := m.Facts()[fact]; known {
				one.Values[value.Value()] = append(one.Values[value.Value()], m.label())
			}
		}
		differ = append(differ, one)
	}
	return model, differ
}

// numberOf returns a model with the number of network cards, of any speed.
func numberOf(cards []hardware.NICs) hardware.Model {
	all := hardware.NICs{}
	for _, some := range cards {
		all.Count += some.Count
	}
	return hardware.Model{NICs: []hardware.NICs{all}}
}

// Finding is what a check says of a machine.
type Finding struct {
	NodeID      string                `json:"node_id"`
	NodeName    string                `json:"node_name"`
	Model       string                `json:"model"`                   // "": not known
	Serial      string                `json:"serial_number,omitempty"` // of the machine
	Unknown     string                `json:"unknown,omitempty"`       // why the machine was not compared; "": it was
	Differences []hardware.Difference `json:"differences"`
}

// Check compares machines with their models.
func (f File) Check(machines []Machine) []Finding {
	all := make([]Finding, len(machines))
	for i, m := range machines {
		model, has := f[m.Product]
		all[i] = Finding{m.NodeID, m.NodeName, m.Product, m.Serial, m.unknown(), []hardware.Difference{}}
		switch {
		case all[i].Unknown != "":
		case !has:
			all[i].Differences = append(all[i].Differences, hardware.Difference{
				Fact: "product", Expected: strings.Join(slices.Sorted(maps.Keys(f)), ", "), Found: m.Product,
				Text: fmt.Sprintf("the file has no model %q", m.Product),
			})
		default:
			all[i].Differences = append(all[i].Differences, model.Differences(m.Machine)...)
		}
	}
	return all
}

// unknown says why a machine belongs to no model; "" if it does.
func (m Machine) unknown() string {
	switch {
	case !m.Inspected:
		return "Ironic has no inventory of it: inspect it"
	case m.Product == "":
		return "its inventory names no product"
	}
	return ""
}

// Unknown returns which machines belong to no model, and why.
func Unknown(machines []Machine) (all []string) {
	for _, m := range machines {
		if why := m.unknown(); why != "" {
			all = append(all, m.label()+": "+why)
		}
	}
	return all
}

// String describes the finding on one line; "" if the machine is as expected.
func (f Finding) String() string {
	texts := []string{f.Unknown}
	if f.Unknown == "" {
		texts = nil
	}
	for _, d := range f.Differences {
		texts = append(texts, d.Text)
	}
	if len(texts) == 0 {
		return ""
	}
	label := Machine{NodeID: f.NodeID, NodeName: f.NodeName}.label()
	if f.Model != "" {
		label += " (" + f.Model + ")"
	}
	return label + ": " + strings.Join(texts, "; ")
}
