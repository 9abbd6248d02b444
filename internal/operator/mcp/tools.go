package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// selection selects machines.
type selection struct {
	Class  string   `json:"resource_class,omitempty"  jsonschema:"only those of this resource class"`
	Owner  string   `json:"owner,omitempty"           jsonschema:"only those of this owner"`
	Name   string   `json:"name_regex,omitempty"      jsonschema:"only those whose name matches this regular expression"`
	States []string `json:"provision_state,omitempty" jsonschema:"only machines in one of these provision states, such as active"`
	Limit  int      `json:"limit,omitempty"           jsonschema:"how many to return at most, by default 50"`
}

func (s selection) args() (args []string) {
	for _, one := range [][2]string{{"resource-class", s.Class}, {"owner", s.Owner}, {"name-regex", s.Name}} {
		if one[1] != "" {
			args = append(args, "--"+one[0]+"="+one[1])
		}
	}
	for _, state := range s.States {
		args = append(args, "--provision-state="+state)
	}
	return args
}

func (s selection) limit() int { return cmp.Or(max(s.Limit, 0), defaultMembers) }

type listInput struct {
	selection

	What string `json:"what,omitempty" jsonschema:"nodes (default) or allocations"`
}

func (t *tools) list(ctx context.Context, in listInput) (Answer, error) {
	what := cmp.Or(in.What, "nodes")
	if what != "nodes" && what != "allocations" {
		return Answer{}, errors.New("what must be nodes or allocations")
	}
	if what == "allocations" && len(in.States) > 0 {
		return Answer{}, errors.New("allocations have no provision_state")
	}
	return t.call(ctx, in.limit(), nil, append([]string{"list", what, "--output=json"}, in.args()...)...)
}

type showInput struct {
	Node string `json:"node" jsonschema:"name or UUID of the machine"`
}

func (t *tools) show(ctx context.Context, in showInput) (Answer, error) {
	return t.call(ctx, defaultMembers, nil, "show", "--output=json", "--", in.Node)
}

type historyInput struct {
	selection

	Nodes []string `json:"nodes,omitempty" jsonschema:"names or UUIDs of machines, instead of a selection"`
}

func (t *tools) history(ctx context.Context, in historyInput) (Answer, error) {
	if len(in.Nodes)+len(in.args()) == 0 {
		return Answer{}, errors.New("name nodes, or select them by resource_class, owner, name_regex or provision_state")
	}
	args := append([]string{"history", "--output=json"}, in.args()...)
	return t.call(ctx, in.limit(), nil, append(append(args, "--"), in.Nodes...)...)
}

type doctorInput struct{}

func (t *tools) doctor(ctx context.Context, _ doctorInput) (Answer, error) {
	return t.call(ctx, defaultMembers, nil, "doctor", "--output=json")
}

type forecastInput struct {
	Plan        string            `json:"plan"                  jsonschema:"file of terraform show -json, below metal's directory"`
	Times       map[string]string `json:"times,omitempty"       jsonschema:"operation (deploy, clean, undeploy ...): 12m, or gpu=25m"`
	Parallelism int               `json:"parallelism,omitempty" jsonschema:"number that terraform apply gets, by default 10"`
	WhatIf      []string          `json:"what_if,omitempty"     jsonschema:"what fails: image-fails, or bmc-dead=NODE"`
}

func (t *tools) forecast(ctx context.Context, in forecastInput) (Answer, error) {
	operations := []string{"deploy", "clean", "undeploy", "inspect", "service", "restart"}
	args := []string{"forecast", "--output=json"}
	for _, operation := range slices.Sorted(maps.Keys(in.Times)) {
		if !slices.Contains(operations, operation) {
			return Answer{}, fmt.Errorf("times has no operation %q", operation)
		}
		args = append(args, "--"+operation+"="+in.Times[operation])
	}
	if in.Parallelism > 0 {
		args = append(args, "--parallelism="+strconv.Itoa(in.Parallelism))
	}
	for _, what := range in.WhatIf {
		args = append(args, "--what-if="+what)
	}
	plan, err := t.plans.Open(in.Plan)
	if err != nil {
		return Answer{}, fmt.Errorf("read the plan: %w", err)
	}
	defer plan.Close() //nolint:errcheck // it was read
	return t.call(ctx, defaultMembers, plan, append(args, "-")...)
}
