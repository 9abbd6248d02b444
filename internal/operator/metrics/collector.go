package metrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// buckets are upper bounds of durations in seconds, from 10 s to 4 h.
var buckets = []float64{10, 30, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 14400}

// Collector keeps the metrics of a watch. As a watch.Display it takes samples; as a prometheus.Collector it answers scrapes meanwhile.
type Collector struct {
	limit    int // of the slots of a scope; 0: none
	took     *prometheus.HistogramVec
	failures *prometheus.CounterVec

	mu       sync.Mutex
	labels   map[string]names
	troubles int
	listed   time.Time // zero: never
	gauges   []prometheus.Metric
}

// New returns a collector that has no sample. limit is how many slots a scope has; 0: there is no limit.
func New(limit int) *Collector {
	c := &Collector{
		limit: limit, labels: map[string]names{},
		took:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: took.Name, Help: took.Help, Buckets: buckets}, took.Labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: failures.Name, Help: failures.Help}, failures.Labels),
	}
	for _, f := range Families() {
		for _, label := range f.Labels {
			c.labels[label] = names{}
		}
	}
	c.label("scope", "") // it always has a value
	return c
}

func (f Family) desc() *prometheus.Desc { return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil) }

func (f Family) value(value float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if f.Kind == counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(f.desc(), kind, value, labels...)
}

// Describe tells Prometheus all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range Families() {
		to <- f.desc()
	}
}

// Collect tells Prometheus the values. Those of the last sample are left out if Ironic did not answer since.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.took.Collect(to)
	c.failures.Collect(to)
	c.mu.Lock()
	defer c.mu.Unlock()
	to <- troubles.value(float64(c.troubles))
	if !c.listed.IsZero() {
		to <- listed.value(float64(c.listed.Unix()))
	}
	if c.gauges == nil {
		to <- up.value(0)
		return
	}
	to <- up.value(1)
	for _, m := range c.gauges {
		to <- m
	}
}

// Update takes a sample and the operations that have ended.
func (c *Collector) Update(v watch.View, changes []watch.Change) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range changes {
		switch ended := change.Ended; {
		case ended == nil:
		case ended.Failed:
			c.failures.WithLabelValues(c.label("step", ended.Step), c.label("reason", cmp.Or(ended.Reason, unknown))).Inc()
		case ended.Took > 0:
			c.took.WithLabelValues(c.label("operation", ended.Operation)).Observe(ended.Took.Seconds())
		}
	}
	c.listed = time.Now()
	isFrozen := 0.0
	if v.Sample.Freeze != nil {
		isFrozen = 1
	}
	c.gauges = slices.Concat(c.machines(v.Sample), c.slots(v.Sample), []prometheus.Metric{frozen.value(isFrozen)})
	return nil
}

// Trouble notes that Ironic did not answer.
func (c *Collector) Trouble(watch.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.troubles++
	c.gauges = nil
}

// Tick does nothing: metrics change with a sample.
func (c *Collector) Tick(watch.View) error { return nil }

// End does nothing: what was scraped is history.
func (c *Collector) End(watch.View) error { return nil }

// label returns the value of a label for a name; mu is held.
func (c *Collector) label(label, name string) string { return c.labels[label].of(name) }

// machines counts the machines of a sample; mu is held.
func (c *Collector) machines(s watch.Sample) []prometheus.Metric {
	type place struct{ class, group string }
	type spot struct {
		place
		state string
	}
	type trouble struct {
		place
		reason string
	}
	type wellness struct {
		place
		health string
	}
	counts, failures, since, healths := map[spot]int{}, map[trouble]int{}, map[string]time.Time{}, map[wellness]int{}
	byClass := slices.SortedFunc(slices.Values(s.Machines), func(a, b watch.Machine) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Group, b.Group)) // a restart gives room to the same names
	})
	for _, m := range byClass {
		at := place{c.label("resource_class", m.Class), c.label("conductor_group", m.Group)}
		state := c.label("state", m.State)
		counts[spot{at, state}]++
		failures[trouble{at, none}] += 0
		if m.Failed {
			failures[trouble{at, c.label("reason", cmp.Or(m.Why.Reason, unknown))}]++
		}
		if m.Health != "" {
			healths[wellness{at, c.label("health", m.Health)}]++
		}
		phase := c.label("state", m.Phase())
		if first := since[phase]; m.InProgress && m.Power == "" && (first.IsZero() || m.Since.Before(first)) {
			since[phase] = m.Since
		}
	}
	all := []prometheus.Metric{}
	for at, n := range counts {
		all = append(all, machines.value(float64(n), at.state, at.class, at.group))
	}
	for at, n := range failures {
		all = append(all, failed.value(float64(n), at.class, at.group, at.reason))
	}
	for at, n := range healths {
		all = append(all, health.value(float64(n), at.class, at.group, at.health))
	}
	for state, begun := range since {
		all = append(all, longest.value(max(0, s.Taken.Sub(begun).Seconds()), state))
	}
	return all
}

// slots tells how the slots of a sample are used; mu is held.
func (c *Collector) slots(s watch.Sample) []prometheus.Metric {
	if s.Slots == nil {
		return nil
	}
	usedBy, waitingIn, waits := map[string]int{"": 0}, map[string]int{"": 0}, map[string]time.Duration{"": 0}
	for _, scope := range slices.Sorted(maps.Keys(s.Slots.Used)) {
		usedBy[c.label("scope", scope)] += s.Slots.Used[scope]
	}
	for _, scope := range slices.Sorted(maps.Keys(s.Slots.Waiting)) {
		w, label := s.Slots.Waiting[scope], c.label("scope", scope)
		waitingIn[label] += w.Machines
		waits[label] = max(waits[label], s.Taken.Sub(w.Since))
	}
	var all []prometheus.Metric
	for scope, n := range usedBy {
		all = append(all, used.value(float64(n), scope))
	}
	if c.limit > 0 {
		all = append(all, most.value(float64(c.limit)))
	}
	if s.Slots.Waiting == nil {
		return all
	}
	for scope, n := range waitingIn {
		all = append(all, waiting.value(float64(n), scope), oldest.value(waits[scope].Seconds(), scope))
	}
	return all
}
