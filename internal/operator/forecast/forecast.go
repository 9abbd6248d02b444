package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrEndless says that machines would wait for ever.
var ErrEndless = errors.New("the apply would not end")

// A forecast tries many orders in which Terraform may begin with steps that are ready at the same time, because it has none: fewer for
// plans with many steps, which take longer.
const (
	mostOrders  = 100
	leastOrders = 5
	stepsInAll  = 2000
)

// Make makes a forecast. It returns an error of KindUnknown if the input lacks something.
func Make(in Input) (*Result, error) {
	if err := in.unknown(); err != nil {
		return nil, err
	}
	if names := in.WhatIf.strangers(in.Steps); len(names) > 0 {
		return nil, fmt.Errorf("the plan does nothing with machine %s, whose BMC is to be dead", strings.Join(names, ", "))
	}
	notes := append(in.queue(), in.crowd()...)
	all, err := tries(in, true)
	if err != nil {
		return nil, err
	}
	result := all[len(all)/2]
	result.Ends = make(map[Outcome]Range)
	result.Notes = append(result.Notes, notes...)
	result.widen(all)
	if long := in.longOperations(); long != "" {
		result.Notes = append(result.Notes, long)
		if all, err = tries(in, false); err != nil {
			return nil, err
		}
		result.widen(all)
	}
	if chance := result.chance(); chance != "" {
		result.Notes = append(result.Notes, chance)
	}
	if !slices.ContainsFunc(in.Steps, func(s Step) bool { return s.MayBe }) {
		return result, nil
	}
	certain := in
	certain.Steps = slices.Clone(in.Steps)
	for i := range certain.Steps {
		if certain.Steps[i].MayBe {
			certain.Steps[i].Legs, certain.Steps[i].Turn = nil, nil
		}
	}
	if all, err = tries(certain, true); err != nil {
		return nil, err
	}
	result.Fastest = min(result.Fastest, all[0].Total)
	return result, nil
}

// tries executes the steps in several orders, and returns the results, the shortest one first. lasts: see slots.
func tries(in Input, lasts bool) (all []*Result, err error) {
	n := min(max(stepsInAll/max(len(in.Steps), 1), leastOrders), mostOrders)
	if in.Order != nil {
		n = 1
	}
	for order := range n {
		e := newEngine(in, order, lasts)
		for e.settle(); !e.isOver(); e.settle() {
			if !e.advance() {
				return nil, e.endless()
			}
		}
		all = append(all, e.result())
	}
	slices.SortStableFunc(all, func(a, b *Result) int { return cmp.Compare(a.Total, b.Total) })
	return all, nil
}
