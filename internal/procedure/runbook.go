package procedure

import (
	"cmp"
	"context"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// sendSteps gives a runbook the wanted steps, in their order: see rearrange.
func sendSteps(ctx context.Context, site *machine.Site, runbook *ironic.Procedure, wanted []ironic.RunbookStep) error {
	for _, list := range rearrange(runbook.Steps, wanted) {
		if err := site.Ironic.PatchIn(ctx, ironic.Runbooks, runbook.UUID, ironic.Patch{}.With("/steps", list)); err != nil {
			return err
		}
	}
	return nil
}

// rearrange returns the lists of steps that a runbook must be given, one after the other, so that it has the wanted steps in their order.
// Ironic runs the steps in the order in which it has stored them. Of a new list it stores only what differs, after the rest, sorted by
// interface and name (reference/ironic.md#the-order-of-the-steps-of-a-runbook). So each list gives new numbers to the longest group of
// steps that Ironic stores in their order, which moves them to the end. Each list has all steps, so that a machine that is cleaned
// meanwhile misses none.
func rearrange(has []ironic.Step, wanted []ironic.RunbookStep) (lists [][]ironic.RunbookStep) {
	orders, free := map[[2]string]int64{}, int64(0)
	for _, step := range has {
		orders[[2]string{step.Interface, step.Step}] = step.Order
		free = max(free, step.Order)
	}
	var moved []ironic.RunbookStep
	for rest := wanted; len(rest) > 0; {
		group := ascending(rest)
		for _, step := range rest[:group] {
			free++
			step.Order = free
			moved = append(moved, step)
		}
		rest = rest[group:]
		list := moved[:len(moved):len(moved)]
		for _, step := range rest {
			if order, is := orders[[2]string{step.Interface, step.Step}]; is {
				step.Order = order
				list = append(list, step)
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// ascending returns how many steps at the beginning of a list are sorted by interface and name.
func ascending(steps []ironic.RunbookStep) int {
	for i := 1; i < len(steps); i++ {
		if cmp.Or(cmp.Compare(steps[i-1].Interface, steps[i].Interface), cmp.Compare(steps[i-1].Step, steps[i].Step)) > 0 {
			return i
		}
	}
	return len(steps)
}
