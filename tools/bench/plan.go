package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// both is the same command run with our provider and with the one that answers at once.
type both struct {
	name          string
	args          []string
	ours, instant []cost
}

// comparePlans prints what a plan of many hosts costs, beside what it costs with a provider that answers at once.
func (b *bench) comparePlans(ctx context.Context, print printer) error {
	b.say("build the provider that answers at once")
	instant, err := build(ctx, filepath.Join(b.root, "tools"), "./bench/instant", filepath.Join(b.dir, "instant"))
	if err != nil {
		return err
	}
	f, err := b.newFleet(ctx, b.planHosts)
	if err != nil {
		return err
	}
	defer f.stop()
	b.say("refresh them once, so that the state is one that a plan has nothing to add to")
	if _, err := f.run(ctx, b.provider, "apply", "-refresh-only", "-auto-approve"); err != nil {
		return err
	}
	compared := []*both{
		{name: "plan"},
		{name: "plan -refresh-only", args: []string{"-refresh-only"}},
	}
	for round := range b.repeat {
		b.say("plan %d hosts, round %d of %d", b.planHosts, round+1, b.repeat)
		for _, c := range compared {
			if err := c.run(ctx, f, b.provider, instant); err != nil {
				return err
			}
		}
	}
	print("\n### Plan and refresh of %d hosts, median of %d (least to most)\n\n", b.planHosts, b.repeat)
	print("| command | time | answered at once | ratio | processor time | answered at once | ratio " +
		"|\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range compared {
		print("| %s |", c.name)
		for _, measure := range []func(cost) time.Duration{
			func(c cost) time.Duration { return c.wall }, func(c cost) time.Duration { return c.cpu },
		} {
			ours, instant := summarize(c.ours, measure), summarize(c.instant, measure)
			print(" %s | %s | %.2f |", ours, instant, ours.median.Seconds()/instant.median.Seconds())
		}
		print("\n")
	}
	return nil
}

// run runs the command with each provider, one after the other, so that what else the machine does hits both.
func (c *both) run(ctx context.Context, f *fleet, provider, instant string) error {
	ours, err := f.emptyPlan(ctx, provider, c.args...)
	if err != nil {
		return err
	}
	theirs, err := f.emptyPlan(ctx, instant, c.args...)
	if err != nil {
		return fmt.Errorf("answering at once: %w", err)
	}
	c.ours, c.instant = append(c.ours, ours), append(c.instant, theirs)
	return nil
}

// summary is what a measure was in several runs.
type summary struct{ least, median, most time.Duration }

// summarize needs one cost at least. If the number of runs is even, the median is the larger of the two in the middle.
func summarize(costs []cost, measure func(cost) time.Duration) summary {
	sorted := slices.SortedFunc(slices.Values(costs), func(a, b cost) int { return cmp.Compare(measure(a), measure(b)) })
	return summary{measure(sorted[0]), measure(sorted[len(sorted)/2]), measure(sorted[len(sorted)-1])}
}

func (s summary) String() string {
	return fmt.Sprintf("%.1f s (%.1f to %.1f)", s.median.Seconds(), s.least.Seconds(), s.most.Seconds())
}
