package metrics_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/metrics"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// series gathers what a collector exports, as lines such as metal_machines{state="active"} 3, sorted. It leaves out the buckets of
// histograms.
func series(t *testing.T, c *metrics.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
			all = append(all, fmt.Sprintf("%s{%s} %g", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	slices.Sort(all)
	return all
}

// gpu is a machine of a class and a group.
func gpu(id int, state string) watch.Machine {
	return watch.Machine{ID: fmt.Sprint(id), Name: fmt.Sprint("rack1-", id), State: state, Class: "gpu", Group: "rack1"}
}

// told returns a collector that has taken samples.
func told(t *testing.T, limit int, samples ...watch.Sample) *metrics.Collector {
	t.Helper()
	c, model := metrics.New(limit), watch.NewModel("", 0)
	for _, s := range samples {
		changes := model.Add(s)
		if err := c.Update(model.View(s.Taken), changes); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// life is a machine that is deployed in 8 minutes, one that fails, one whose run checks whether it is ready, and one at rest, with slots.
func life(begin time.Time) []watch.Sample {
	deploying, failing := gpu(1, "deploying"), gpu(2, "cleaning")
	deploying.Operation, deploying.InProgress, deploying.Since = "deploy", true, begin.Add(time.Minute)
	failing.Operation, failing.InProgress, failing.Since = "clean", true, begin.Add(time.Minute)
	failed, checked := gpu(2, "clean failed"), gpu(3, "active")
	failed.Failed, failed.Step, failed.Since = true, "deploy.erase_devices", begin.Add(9*time.Minute)
	failed.Why.Reason = "clean-erase"
	checked.Checked, checked.InProgress, checked.Operation, checked.Since = true, true, "ready check", begin
	done := gpu(1, "active")
	done.Since, done.Health, failed.Health = begin.Add(9*time.Minute), "OK", "Critical"
	slots := &watch.Slots{
		Used:    map[string]int{"": 2},
		Waiting: map[string]watch.Wait{"": {Machines: 3, Since: begin}},
	}
	return []watch.Sample{
		{
			Taken: begin, Machines: []watch.Machine{gpu(1, "available"), gpu(2, "available"), checked, {ID: "4", State: "enroll"}},
			Slots: slots,
		},
		{
			Taken: begin.Add(2 * time.Minute), Machines: []watch.Machine{deploying, failing, checked, {ID: "4", State: "enroll"}},
			Slots: slots,
		},
		{Taken: begin.Add(10 * time.Minute), Machines: []watch.Machine{done, failed, checked, {ID: "4", State: "enroll"}}, Slots: slots},
	}
}

func TestCollector_exportsWhatTheWatchSees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := strings.Join(series(t, told(t, 20, life(begin)...)), "\n")
		want := `metal_last_list_timestamp_seconds{} 9.466848e+08
metal_list_errors_total{} 0
metal_longest_in_state_seconds{state="ready check"} 600
metal_machine_health{conductor_group="rack1",health="Critical",resource_class="gpu"} 1
metal_machine_health{conductor_group="rack1",health="OK",resource_class="gpu"} 1
metal_machines_failed{conductor_group="",reason="none",resource_class=""} 0
metal_machines_failed{conductor_group="rack1",reason="clean-erase",resource_class="gpu"} 1
metal_machines_failed{conductor_group="rack1",reason="none",resource_class="gpu"} 0
metal_machines_waiting{scope=""} 3
metal_machines{conductor_group="",resource_class="",state="enroll"} 1
metal_machines{conductor_group="rack1",resource_class="gpu",state="active"} 2
metal_machines{conductor_group="rack1",resource_class="gpu",state="clean failed"} 1
metal_oldest_wait_seconds{scope=""} 600
metal_operation_duration_seconds{operation="deploy"} 480
metal_operations_failed_total{reason="clean-erase",step="deploy.erase_devices"} 1
metal_site_frozen{} 0
metal_slots_limit{} 20
metal_slots_used{scope=""} 2
metal_up{} 1`
		if got != want {
			t.Errorf("exported\n%s", got)
		}
	})
}

// Old values are not exported as new ones. What is counted since the beginning stays.
func TestCollector_saysThatIronicDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const unknown = "metal_list_errors_total{} 2\nmetal_up{} 0"
		c := metrics.New(20)
		c.Trouble(watch.View{}, errors.New("503"))
		c.Trouble(watch.View{}, errors.New("503"))
		if got := strings.Join(series(t, c), "\n"); got != unknown {
			t.Errorf("without a list it exports\n%s", got)
		}
		c = told(t, 20, life(time.Now())...)
		c.Trouble(watch.View{}, errors.New("503"))
		want := `metal_last_list_timestamp_seconds{} 9.466848e+08
metal_list_errors_total{} 1
metal_operation_duration_seconds{operation="deploy"} 480
metal_operations_failed_total{reason="clean-erase",step="deploy.erase_devices"} 1
metal_up{} 0`
		if got := strings.Join(series(t, c), "\n"); got != want {
			t.Errorf("it exports\n%s", got)
		}
	})
}

func TestCollector_leavesOutWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	sample := watch.Sample{Taken: time.Now(), Slots: &watch.Slots{}}
	got := strings.Join(series(t, told(t, 0, sample)), "\n")
	if strings.Contains(got, "waiting") || strings.Contains(got, "oldest") || strings.Contains(got, "limit") ||
		!strings.Contains(got, `metal_slots_used{scope=""} 0`) {
		t.Errorf("it exports\n%s", got)
	}
	sample.Slots.Waiting = map[string]watch.Wait{}
	if got := strings.Join(series(t, told(t, 0, sample)), "\n"); !strings.Contains(got, `metal_machines_waiting{scope=""} 0`) {
		t.Errorf("nobody waits, and it exports\n%s", got)
	}
}

// 5,000 classes, groups, states, steps and scopes have 201 values each. A value keeps its meaning when others come before it.
func TestCollector_isBounded(t *testing.T) {
	t.Parallel()
	const many = 5000
	sample := func(from int) watch.Sample {
		s := watch.Sample{Taken: time.Now(), Slots: &watch.Slots{Used: map[string]int{}, Waiting: map[string]watch.Wait{}}}
		for i := from; i < many; i++ {
			text := fmt.Sprintf("n%04d", i)
			s.Machines = append(s.Machines, watch.Machine{
				ID: text, Name: text, Class: text, Group: text, State: text, Step: text,
				Failed: from == 0, InProgress: true,
			})
			s.Slots.Used[text], s.Slots.Waiting[text] = 1, watch.Wait{Machines: 1}
		}
		return s
	}
	counts, sums := map[string]int{}, map[string]float64{}
	for _, line := range series(t, told(t, 20, sample(1000), sample(0))) {
		name, value, _ := strings.Cut(line, "{")
		counts[name]++
		var n float64
		if _, err := fmt.Sscan(value[strings.LastIndex(value, " ")+1:], &n); err != nil {
			t.Fatal(err)
		}
		sums[name] += n
		if strings.Contains(line, "n0999") {
			t.Errorf("there is no room for %s", line)
		}
	}
	for _, name := range []string{
		"metal_machines", "metal_machines_failed", "metal_operations_failed_total", "metal_slots_used",
		"metal_machines_waiting",
	} {
		most := map[string]int{"metal_machines_failed": 402}[name] // each class also has the reason none
		if counts[name] != max(201, most) || sums[name] != many {
			t.Errorf("%s has %d series of %g", name, counts[name], sums[name])
		}
	}
}
