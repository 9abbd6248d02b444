package throttle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// pollInterval is the default poll_interval.
const pollInterval = 10 * time.Second

// site is a simulated site in virtual time: hosts, runs that work on them, and other users.
type site struct {
	limit   throttle.Limit
	lower   time.Duration // when the limit is lowered to lowerTo; zero: never
	lowerTo int
	hosts   []*simHost
	runs    int
	look    time.Duration // between two polls of a run
	changed bool          // something has happened since the last full minute
	foreign []foreign
	words   []throttle.Word // what the runs have left in the record of the lock
	lives   []int           // how often each run was started again
}

type simHost struct {
	id       string
	run      int           // which run works on it
	arrives  time.Duration // when it joins the queue
	lasts    time.Duration // how long its work takes
	fails    int           // how often it fails before it succeeds
	hangs    bool          // never ends
	dies     bool          // its run crashes once it has started it: the work goes on, the run's queue begins anew later
	failures int
	queued   time.Duration
	since    time.Duration // at work since
	state    simState
	told     bool // its run has left word of it
}

type simState int

const (
	away simState = iota
	waiting
	working
	finished
)

// foreign is a host of another user with an operation in progress.
type foreign struct{ from, to time.Duration }

type result struct {
	finished, peak, requests     int
	makespan, bound, longestWait time.Duration
}

// randomSite is a small site with everything that can happen.
func randomSite(seed uint64) *site {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &site{limit: throttle.Limit{Max: 1 + r.IntN(6), StuckAfter: 45 * time.Minute}, runs: 1 + r.IntN(4), look: pollInterval}
	if r.IntN(4) == 0 {
		s.lower, s.lowerTo = time.Duration(r.IntN(3600))*time.Second, 1+r.IntN(s.limit.Max)
	}
	mayHang := s.limit.Max - 1 // with as many stuck hosts as slots, no other host would get one
	if s.lower != 0 {
		mayHang = s.lowerTo - 1
	}
	for i := range 5 + r.IntN(25) {
		h := &simHost{
			id: fmt.Sprintf("h%02d", i), run: r.IntN(s.runs), arrives: time.Duration(r.IntN(600)) * time.Second,
			lasts: time.Duration(1+r.IntN(1800)) * time.Second,
		}
		switch r.IntN(12) {
		case 0:
			h.fails = 1 + r.IntN(3)
		case 1:
			h.hangs = mayHang > 0
			mayHang--
		case 2:
			h.dies = true
		}
		s.hosts = append(s.hosts, h)
	}
	for range r.IntN(6) {
		from := time.Duration(r.IntN(3600)) * time.Second
		s.foreign = append(s.foreign, foreign{from, from + time.Duration(r.IntN(1800))*time.Second})
	}
	return s
}

// largeSite is 500 hosts on 20 slots: durations are Pareto-distributed round a quarter of an hour, up to 40 minutes.
func largeSite(seed uint64) *site {
	r := rand.New(rand.NewPCG(seed, 2))
	s := &site{limit: throttle.Limit{Max: 20, StuckAfter: 45 * time.Minute}, runs: 3, look: pollInterval}
	for i := range 500 {
		minutes := math.Min(8/math.Pow(1-r.Float64(), 1/1.5), 40)
		h := &simHost{id: fmt.Sprintf("h%03d", i), run: i % 3, lasts: time.Duration(minutes * float64(time.Minute))}
		switch n := r.IntN(100); {
		case n < 5:
			h.fails = 1
		case n < 7:
			h.hangs = true
		}
		s.hosts = append(s.hosts, h)
	}
	return s
}

// run plays the site, second by second where something happens. Every run polls once per interval, each at its own moment, and admits under
// a lock, so that the moments of two runs never overlap.
func (s *site) run() (result, error) {
	var r result
	s.lives = make([]int, s.runs)
	const end = 60 * 24 * time.Hour
	for now := time.Duration(0); now < end; now = s.next(now) {
		if s.lower != 0 && now >= s.lower {
			s.limit.Max = s.lowerTo
		}
		s.changed = s.changed && now%time.Minute != 0
		s.advance(now)
		for run := range s.runs {
			if now%s.look == time.Duration(run)*time.Second%s.look && s.anyWaiting(run) {
				r.requests++ // the poll
				if !s.changed && now%time.Minute != 0 {
					s.renew(run, now)
					continue // it shows what the one before has shown, except for hosts that begin to hang
				}
				if err := s.round(run, now, &r); err != nil {
					return r, fmt.Errorf("after %s: %w", now, err)
				}
			}
		}
		if s.allDone() {
			r.makespan = now
			break
		}
	}
	for _, h := range s.hosts {
		if h.state == finished || (h.state == working && h.hangs) {
			r.finished++
		}
	}
	r.bound = s.bound()
	return r, nil
}

// next is the next full second at which a host arrives or ends, a run polls, or the limit is lowered.
func (s *site) next(now time.Duration) time.Duration {
	next := time.Duration(math.MaxInt64)
	soon := func(at time.Duration) {
		if at = (at + time.Second - 1).Truncate(time.Second); at > now {
			next = min(next, at)
		}
	}
	soon(s.lower)
	for _, h := range s.hosts {
		switch {
		case h.state == away:
			soon(h.arrives)
		case h.state == working && !h.hangs:
			soon(h.since + h.lasts)
		case h.state == waiting:
			offset := time.Duration(h.run) * time.Second % s.look
			soon((now - offset).Truncate(s.look) + s.look + offset)
		}
	}
	return next
}

// advance lets hosts arrive and end.
func (s *site) advance(now time.Duration) {
	for _, h := range s.hosts {
		switch {
		case h.state == away && now >= h.arrives:
			h.state, h.queued, s.changed = waiting, now, true
		case h.state == working && !h.hangs && now >= h.since+h.lasts:
			h.state, s.changed = finished, true
			if h.failures < h.fails {
				h.failures++
				h.state, h.queued, h.told = waiting, now, false
			}
		}
	}
}

func (s *site) anyWaiting(run int) bool {
	return slices.ContainsFunc(s.hosts, func(h *simHost) bool { return h.run == run && h.state == waiting })
}

// allDone reports whether nothing of ours is left to do; hosts that hang are never done.
func (s *site) allDone() bool {
	return !slices.ContainsFunc(s.hosts, func(h *simHost) bool { return h.state != finished && (h.state != working || !h.hangs) })
}

// round admits hosts of one run, and checks the promises.
func (s *site) round(run int, now time.Duration, r *result) error {
	census := s.census(now)
	var tickets []throttle.Ticket
	byID := map[string]*simHost{}
	for _, h := range s.hosts {
		if h.run == run && h.state == waiting {
			tickets = append(tickets, throttle.Ticket{ID: h.id, Failures: h.failures, Queued: noon.Add(h.queued)})
			byID[h.id] = h
		}
	}
	others := throttle.Alive(throttle.Found{Words: s.words}, s.name(run), noon.Add(now), time.Minute)
	d := throttle.Decide(s.limit, census, tickets, others...)
	if err := s.overtakes(run, census, d); err != nil {
		return err
	}
	s.changed = s.changed || d.Yields > 0 // words expire
	if len(d.Go) > 0 {
		r.requests += 3 + len(d.Go) // lock, census, unlock, and a verb each
	}
	for _, t := range d.Go {
		h := byID[t.ID]
		h.state, h.since = working, now
		r.longestWait = max(r.longestWait, now-h.queued)
		if h.dies {
			s.crash(run, now)
			h.dies = false
			break
		}
	}
	s.leave(run, now)
	at := len(s.census(now).Busy)
	r.peak = max(r.peak, at)
	counted := at - len(d.Stuck)
	if len(d.Go) > 0 && counted > s.limit.Max {
		return fmt.Errorf("%d hosts at work, %d of them hanging, and the limit is %d", at, len(d.Stuck), s.limit.Max)
	}
	if len(d.Go) > 0 && at > 2*s.limit.Max {
		return fmt.Errorf("%d hosts at work, over twice the limit of %d", at, s.limit.Max)
	}
	if counted < s.limit.Max && s.anyWaiting(run) && d.Yields == 0 {
		return fmt.Errorf("room for %d is left while hosts wait", s.limit.Max-counted)
	}
	return nil
}

// crash ends a run: what it has started goes on, what waited comes back with the next run two minutes later.
func (s *site) crash(run int, now time.Duration) {
	for _, h := range s.hosts {
		if h.run == run && h.state == waiting {
			h.state, h.arrives, h.told = away, now+2*time.Minute, false
		}
	}
	s.lives[run]++
}

// name is that of a run in its words.
func (s *site) name(run int) string { return fmt.Sprintf("%d.%d", run, s.lives[run]) }

// leave replaces the words of a run by those for its hosts that still wait. A run that has crashed leaves none.
func (s *site) leave(run int, now time.Duration) {
	var tickets []throttle.Ticket
	for _, h := range s.hosts {
		if h.run == run && h.state == waiting {
			h.told = true
			tickets = append(tickets, throttle.Ticket{ID: h.id, Failures: h.failures, Queued: noon.Add(h.queued)})
		}
	}
	s.words = append(throttle.Alive(throttle.Found{Words: s.words}, s.name(run), noon.Add(now), time.Minute),
		throttle.WordsOf(s.name(run), s.limit.Max, tickets, 0, noon.Add(now))...)
}

// renew renews the words of a run.
func (s *site) renew(run int, now time.Duration) {
	for i := range s.words {
		if s.words[i].Run == s.name(run) {
			s.words[i].Renewed = noon.Add(now)
		}
	}
}

// overtakes checks that no host starts before one of another run that has failed less, or as often and waits for over 10 s longer, unless
// there are slots for both.
func (s *site) overtakes(run int, census throttle.Census, d throttle.Decision) error {
	room := s.limit.Max - len(census.Busy) + len(d.Stuck)
	for i, t := range d.Go {
		ahead := 0
		for _, h := range s.hosts {
			failures := min(h.failures, throttle.MaxFailures) - min(t.Failures, throttle.MaxFailures)
			if h.run != run && h.state == waiting && h.told &&
				(failures < 0 || failures == 0 && noon.Add(h.queued+10*time.Second).Before(t.Queued)) {
				ahead++
			}
		}
		if ahead >= room-i {
			return fmt.Errorf("%s starts with %d free slots, and %d hosts of other runs go before it", t.ID, room-i, ahead)
		}
	}
	return nil
}

func (s *site) census(now time.Duration) throttle.Census {
	c := throttle.Census{Taken: noon.Add(now)}
	for _, h := range s.hosts {
		if h.state == working {
			c.Busy = append(c.Busy, throttle.Busy{ID: h.id, Since: noon.Add(h.since)})
		}
	}
	for i, f := range s.foreign {
		if now >= f.from && now < f.to {
			c.Busy = append(c.Busy, throttle.Busy{ID: fmt.Sprintf("foreign%d", i), Since: noon.Add(f.from)})
		}
	}
	return c
}

// bound is below what any scheduler can reach: the work spread evenly over the slots, or the longest piece of it. A host
// that hangs takes its slot until it does not count any more.
func (s *site) bound() time.Duration {
	var total, longest time.Duration
	for _, h := range s.hosts {
		d := h.lasts
		if h.hangs {
			d = s.limit.StuckAfter
		}
		total += d * time.Duration(1+h.fails)
		longest = max(longest, d)
	}
	return max(longest, total/time.Duration(s.limit.Max))
}
