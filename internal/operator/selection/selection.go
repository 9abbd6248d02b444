// Package selection says which machines of an Ironic a command concerns.
package selection

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Selection says which machines a command concerns. Nodes excludes the other fields; of those, empty ones select all, and a machine must
// fit all others.
type Selection struct {
	Nodes        []string       // names or UUIDs
	Class, Owner string         // resource class and owner, exactly
	Name         *regexp.Regexp // matches somewhere in the name; nil: all
	States       []string       // provision states, one of them exactly; empty: all
	Allocations  []string       // names or UUIDs of allocations, one of which has reserved the machine; empty: all
}

// IsEmpty reports whether the selection says nothing, so that it selects all machines.
func (s Selection) IsEmpty() bool {
	return len(s.Nodes)+len(s.States)+len(s.Allocations) == 0 && s.Class == "" && s.Owner == "" && s.Name == nil
}

// String describes the selection for people, after the name of the site.
func (s Selection) String() string {
	text := ""
	for _, part := range []struct{ what, value string }{
		{"class", s.Class},
		{"owner", s.Owner},
		{"state", strings.Join(s.States, " or ")},
		{"allocation", strings.Join(s.Allocations, " or ")},
		{"node", strings.Join(s.Nodes, " or ")},
	} {
		if part.value != "" {
			text += fmt.Sprintf(", %s %s", part.what, part.value)
		}
	}
	if s.Name != nil {
		text += fmt.Sprintf(", name %s", s.Name)
	}
	return text
}

const kindNotFound fault.Kind = "selection not found"

// notFound returns the error for what, node or allocation, that Ironic does not have by these names, or that the user may not see.
func notFound(what string, names []string) error {
	return &fault.Error{Kind: kindNotFound, Fact: fmt.Sprintf("Ironic has no %s %s that you may see", what, strings.Join(names, ", "))}
}

// fewNodes is up to how many named machines are read one by one, instead of in a list of all.
const fewNodes = 8

// List reads the machines of a selection: named ones in the order of their names in Nodes, others in Ironic's order. fields are the fields
// that the list has at least; nil: all. The error for names that Ironic does not have names all of them: see IsNotFound.
func (s Selection) List(ctx context.Context, client *ironic.Client, fields []string) ([]ironic.Node, error) {
	return s.Follow().List(ctx, client, fields)
}

// Following lists the machines of a selection again and again. It reads the allocations of the selection once, because Ironic deletes an
// allocation when its node is undeployed. From then on it lists each node that one of them has, or has had in a list before, until another
// allocation has the node. It is not safe for concurrent use.
type Following struct {
	Selection
	allocations map[string]bool // by UUID; nil: they were not read yet
	had         map[string]bool // UUIDs of the nodes that the allocations have had: false if another allocation has the node now
	names       allocationNames
}

// Follow returns a Following that has not read anything.
func (s Selection) Follow() *Following { return &Following{Selection: s, had: map[string]bool{}} }

// HasLeft reports whether an allocation had a node in an earlier list, and another one that is not selected had it in the last list.
func (f *Following) HasLeft(id string) bool {
	had, known := f.had[id]
	return known && !had
}

// List reads the machines as Selection.List does. An allocation that Ironic had in an earlier list may be gone.
func (f *Following) List(ctx context.Context, client *ironic.Client, fields []string) ([]ironic.Node, error) {
	s := f.Selection
	if len(s.Nodes) > 0 {
		return s.named(ctx, client, fields)
	}
	if f.allocations == nil {
		read, err := s.allocations(ctx, client)
		if err != nil {
			return nil, err
		}
		f.allocations = read
	}
	filter := ironic.NodeFilter{ResourceClass: s.Class, Owner: s.Owner}
	if len(s.States) == 1 {
		filter.ProvisionState = s.States[0]
	}
	listed, err := list(ctx, client, filter, with(fields, "uuid", "name", "provision_state", "instance_uuid"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(listed, func(n ironic.Node) bool {
		if mine := f.allocations[n.InstanceUUID]; mine || f.had[n.UUID] && n.InstanceUUID != "" {
			f.had[n.UUID] = mine
		}
		return (s.Name != nil && !s.Name.MatchString(n.Name)) ||
			(len(s.States) > 0 && !slices.Contains(s.States, n.ProvisionState)) ||
			(len(s.Allocations) > 0 && !f.had[n.UUID])
	}), nil
}

func (s Selection) named(ctx context.Context, client *ironic.Client, fields []string) ([]ironic.Node, error) {
	known := map[string]*ironic.Node{}
	if len(s.Nodes) <= fewNodes {
		for _, ref := range s.Nodes {
			node, err := client.Node(ctx, ref)
			if err != nil && !api.IsNotFound(err) {
				return nil, err
			}
			if err == nil {
				known[ref] = node
			}
		}
	} else {
		listed, err := list(ctx, client, ironic.NodeFilter{}, with(fields, "uuid", "name"))
		if err != nil {
			return nil, err
		}
		for i := range listed {
			known[listed[i].UUID] = &listed[i]
			if listed[i].Name != "" {
				known[listed[i].Name] = &listed[i]
			}
		}
	}
	var all []ironic.Node
	var missing []string
	for _, ref := range s.Nodes {
		node := known[ref]
		if node == nil {
			missing = append(missing, ref)
			continue
		}
		if !slices.ContainsFunc(all, func(n ironic.Node) bool { return n.UUID == node.UUID }) {
			all = append(all, *node)
		}
	}
	if len(missing) > 0 {
		return nil, notFound("node", missing)
	}
	return all, nil
}

// ListAllocations reads allocations in one list: those that Allocations names, in this order, else those with class, owner and name.
func (s Selection) ListAllocations(ctx context.Context, client *ironic.Client) ([]ironic.Allocation, error) {
	query := url.Values{}
	for key, value := range map[string]string{"resource_class": s.Class, "owner": s.Owner} {
		if value != "" {
			query.Set(key, value)
		}
	}
	listed, err := client.ListAllocations(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(s.Allocations) == 0 {
		return slices.DeleteFunc(listed, func(a ironic.Allocation) bool { return s.Name != nil && !s.Name.MatchString(a.Name) }), nil
	}
	var all []ironic.Allocation
	var missing []string
	for _, ref := range s.Allocations {
		i := slices.IndexFunc(listed, func(a ironic.Allocation) bool { return a.UUID == ref || a.Name == ref })
		if i < 0 {
			missing = append(missing, ref)
			continue
		}
		all = append(all, listed[i])
	}
	if len(missing) > 0 {
		return nil, notFound("allocation", missing)
	}
	return all, nil
}

func (s Selection) allocations(ctx context.Context, client *ironic.Client) (map[string]bool, error) {
	ids := map[string]bool{}
	var missing []string
	if len(s.Allocations) <= fewNodes {
		for _, ref := range s.Allocations {
			allocation, err := client.Allocation(ctx, ref)
			switch {
			case api.IsNotFound(err):
				missing = append(missing, ref)
			case err != nil:
				return nil, err
			default:
				ids[allocation.UUID] = true
			}
		}
	} else {
		named, err := Selection{Allocations: s.Allocations}.ListAllocations(ctx, client)
		if err != nil {
			return nil, err
		}
		for i := range named {
			ids[named[i].UUID] = true
		}
	}
	if len(missing) > 0 {
		return nil, notFound("allocation", missing)
	}
	return ids, nil
}

// list lists nodes with some fields; nil: all.
func list(ctx context.Context, client *ironic.Client, filter ironic.NodeFilter, fields []string) ([]ironic.Node, error) {
	if fields == nil {
		return client.ListNodes(ctx, filter)
	}
	return client.ListNodeFields(ctx, filter, fields)
}

// with adds fields to a list of fields; nil: all.
func with(fields []string, more ...string) []string {
	if fields == nil {
		return nil
	}
	for _, field := range more {
		if !slices.Contains(fields, field) {
			fields = append(slices.Clip(fields), field)
		}
	}
	return fields
}

// IsNotFound reports whether a selection names what Ironic does not have.
func IsNotFound(err error) bool { return fault.Is(err, kindNotFound) }
