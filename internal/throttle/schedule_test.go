package throttle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ticket(id string, failures, minute int) throttle.Ticket {
	return throttle.Ticket{ID: id, Failures: failures, Queued: noon.Add(time.Duration(minute) * time.Minute)}
}

func busy(id string, forMinutes int) throttle.Busy {
	return throttle.Busy{ID: id, Since: noon.Add(-time.Duration(forMinutes) * time.Minute)}
}

// holds is a machine that this run has switched off, to start it again.
func holds(id string) throttle.Busy { return throttle.Busy{ID: id, Since: noon, Held: true} }

func TestDecide(t *testing.T) {
	t.Parallel()
	limit := throttle.Limit{Max: 3, StuckAfter: 45 * time.Minute}
	for _, tt := range []struct {
		promise string
		limit   throttle.Limit
		busy    []throttle.Busy
		waiting []throttle.Ticket
		goes    []string
		stuck   []string
	}{
		{"first come, first served", limit, nil, []throttle.Ticket{
			ticket("b", 0, 2), ticket("a", 0, 3), ticket("c", 0, 1),
			ticket("d", 0, 4),
		}, []string{"c", "b", "a"}, nil},
		{
			"who has failed waits behind who has not", limit,
			[]throttle.Busy{busy("x", 1), busy("y", 1)},
			[]throttle.Ticket{ticket("bad", 1, 0), ticket("fresh", 0, 9)},
			[]string{"fresh"},
			nil,
		},
		{
			"failures beyond five are all the same",
			throttle.Limit{Max: 1},
			nil,
			[]throttle.Ticket{ticket("a", 99, 1), ticket("b", 5, 2)},
			[]string{"a"},
			nil,
		},
		{
			"equal in all, the ID decides",
			throttle.Limit{Max: 1},
			nil,
			[]throttle.Ticket{ticket("b", 0, 0), ticket("a", 0, 0)},
			[]string{"a"},
			nil,
		},
		{"no free slot", limit, []throttle.Busy{busy("x", 1), busy("y", 1), busy("z", 1)}, []throttle.Ticket{ticket("a", 0, 0)}, nil, nil},
		{
			"at work already needs no room", limit,
			[]throttle.Busy{busy("x", 1), busy("y", 1), busy("z", 1)},
			[]throttle.Ticket{ticket("y", 0, 0)},
			[]string{"y"},
			nil,
		},
		{
			"who holds a slot starts again before others",
			throttle.Limit{Max: 2},
			[]throttle.Busy{busy("x", 1), holds("y")},
			[]throttle.Ticket{ticket("a", 0, 0), ticket("y", 5, 9)},
			[]string{"y"},
			nil,
		},
		{
			"a held slot that another run has taken is lost",
			throttle.Limit{Max: 2},
			[]throttle.Busy{busy("x", 1), busy("z", 1), holds("y")},
			[]throttle.Ticket{ticket("y", 0, 0)},
			nil, nil,
		},
		{
			"of two held slots, one is lost",
			throttle.Limit{Max: 2},
			[]throttle.Busy{busy("x", 1), holds("y"), holds("z")},
			[]throttle.Ticket{ticket("y", 0, 0), ticket("z", 0, 1)},
			[]string{"y"},
			nil,
		},
		{
			"who hangs makes room", limit,
			[]throttle.Busy{busy("x", 46), busy("y", 1), busy("z", 1)},
			[]throttle.Ticket{ticket("a", 0, 0), ticket("b", 0, 1)},
			[]string{"a"},
			[]string{"x"},
		},
		{
			"hanging hosts make room for as many as the limit at most",
			throttle.Limit{Max: 1, StuckAfter: time.Minute},
			[]throttle.Busy{busy("x", 9), busy("y", 8)},
			[]throttle.Ticket{ticket("a", 0, 0)},
			nil,
			[]string{"x"},
		},
		{
			"nothing hangs when that is switched off",
			throttle.Limit{Max: 1},
			[]throttle.Busy{busy("x", 999)},
			[]throttle.Ticket{ticket("a", 0, 0)},
			nil, nil,
		},
		{
			"a limit below what is at work only stops newcomers",
			throttle.Limit{Max: 1},
			[]throttle.Busy{busy("x", 1), busy("y", 1)},
			[]throttle.Ticket{ticket("a", 0, 0)},
			nil, nil,
		},
		{
			"no limit, all go",
			throttle.Limit{},
			[]throttle.Busy{busy("x", 1)},
			[]throttle.Ticket{ticket("a", 0, 0), ticket("b", 0, 1)},
			[]string{"a", "b"},
			nil,
		},
	} {
		t.Run(tt.promise, func(t *testing.T) {
			t.Parallel()
			d := throttle.Decide(tt.limit, throttle.Census{Taken: noon, Busy: tt.busy}, tt.waiting)
			var goes, stuck []string
			for _, g := range d.Go {
				goes = append(goes, g.ID)
			}
			for _, s := range d.Stuck {
				stuck = append(stuck, s.ID)
			}
			if !slices.Equal(goes, tt.goes) || !slices.Equal(stuck, tt.stuck) {
				t.Errorf("go %v, stuck %v; want %v, %v", goes, stuck, tt.goes, tt.stuck)
			}
		})
	}
}

func TestScopesDoNotCompete(t *testing.T) {
	t.Parallel()
	rack1 := throttle.Busy{ID: "x", Scope: "rack1", Since: noon}
	d := throttle.Decide(throttle.Limit{Max: 1}, throttle.Census{Taken: noon, Busy: []throttle.Busy{rack1}},
		[]throttle.Ticket{{ID: "a", Scope: "rack1"}, {ID: "b", Scope: "rack2"}})
	if len(d.Go) != 1 || d.Go[0].ID != "b" {
		t.Errorf("go %v, want b alone", d.Go)
	}
	if d.Room["rack1"] != 0 || d.Room["rack2"] != 0 {
		t.Errorf("room %v, want none", d.Room)
	}
}

// TestInvariants runs random sites and checks the promises of the scheduler at every moment: the cooperating runs never exceed
// the limit (except for stuck hosts), a free slot is used at the next poll, every host gets a slot, and a lowered limit only
// delays new hosts.
func TestInvariants(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		site := randomSite(seed)
		result, err := site.run()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if result.finished != len(site.hosts) {
			t.Fatalf("seed %d: %d of %d hosts got their turn", seed, result.finished, len(site.hosts))
		}
	}
}

// BenchmarkSite simulates 500 hosts on 20 slots, with heavy-tailed durations, 5 % failing and 2 % hanging, worked on by
// three runs that poll every 10 seconds.
func BenchmarkSite(b *testing.B) {
	var last result
	for i := range b.N {
		site := largeSite(uint64(i))
		r, err := site.run()
		if err != nil {
			b.Fatal(err)
		}
		last = r
	}
	b.ReportMetric(float64(last.peak), "peak-busy")
	ideal, err := listScheduled(uint64(b.N - 1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(last.makespan.Seconds()/ideal.makespan.Seconds(), "makespan/list-scheduling")
	b.ReportMetric(last.makespan.Seconds()/last.bound.Seconds(), "makespan/any-scheduler")
	b.ReportMetric(last.longestWait.Minutes(), "longest-wait-min")
	b.ReportMetric(float64(last.requests), "requests")
}

func TestALargeSiteIsNeverIdleAndNeverOverloaded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		r, err := largeSite(seed).run()
		if err != nil {
			t.Fatal(err)
		}
		ideal, err := listScheduled(seed)
		if err != nil {
			t.Fatal(err)
		}
		if ratio := r.makespan.Seconds() / ideal.makespan.Seconds(); ratio > 1.05 {
			t.Errorf("seed %d: makespan %s is %.3f of list scheduling's %s", seed, r.makespan, ratio, ideal.makespan)
		}
		if most := int(r.makespan/pollInterval)*3 + 4*500 + 500; r.requests > most {
			t.Errorf("seed %d: %d requests, more than time/poll for each run and a few a host (%d)", seed, r.requests, most)
		}
	}
}

// listScheduled is the large site under ideal list scheduling: one run that sees a slot the moment it is free.
func listScheduled(seed uint64) (result, error) {
	ideal := largeSite(seed)
	ideal.runs, ideal.look = 1, time.Second
	for _, h := range ideal.hosts {
		h.run = 0
	}
	return ideal.run()
}

func ExampleDecide() {
	d := throttle.Decide(throttle.Limit{Max: 2}, throttle.Census{Taken: noon, Busy: []throttle.Busy{busy("web-0", 5)}},
		[]throttle.Ticket{ticket("web-1", 0, 0), ticket("web-2", 0, 1)})
	fmt.Println(d.Go[0].ID, len(d.Go))
	// Output: web-1 1
}
