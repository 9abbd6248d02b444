package throttle

import (
	"fmt"
	"strings"
	"time"
)

// Notice is information for the user about a run; it is not an error.
type Notice struct{ Summary, Detail string }

// stats counts events for the notices. The limiter's mutex protects it.
type stats struct {
	notices []Notice
	said    map[string]bool

	waited  map[string]bool // machines that had to wait
	longest time.Duration   // the longest wait
	others  int             // the most slots that machines of other runs took at once

	working   int             // machines on which this process works now
	peak      int             // the most at once
	machines  map[string]bool // all machines on which it has worked
	turned    map[string]bool // machines that another one has let begin, and not Terraform
	endedAt   time.Time       // when it last finished one
	refills   int             // how often a new machine that started soon after brought the number back to the peak
	saturated bool            // the limit was reached
}

// Notices returns the new notices. It reports the number of waiting machines when this process works on no machine, usually at the
// end of a run, and again if more machines have waited since, or one has waited longer.
func (l *Limiter) Notices() []Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stats
	if len(l.queue) == 0 && s.working == 0 && len(s.waited) > 0 && s.saturated { // otherwise Ironic was slow, not the limit small
		detail := fmt.Sprintf("The longest wait for a slot of provisioning_limit was %s. max_concurrent is %d.",
			s.longest.Round(time.Second), l.limit.Max)
		if s.others > 0 {
			detail += fmt.Sprintf(" Other runs and clients used up to %d of these slots.", s.others)
		}
		if l.site.Partial() {
			detail += " Only the machines that this user can see count."
		}
		// The number makes the summary unique, so that Terraform shows a later one too.
		s.say(fmt.Sprintf("waited %d, %s", len(s.waited), s.longest.Round(time.Second)),
			Notice{fmt.Sprintf("Machines waited for a slot: %d so far", len(s.waited)), detail})
	}
	notices := s.notices
	s.notices = nil
	return notices
}

// Say queues a notice about the run, once for each key.
func (l *Limiter) Say(key string, n Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.say(key, n)
}

// say queues a notice once per run.
func (s *stats) say(key string, n Notice) {
	if s.said == nil {
		s.said = map[string]bool{}
	}
	if !s.said[key] {
		s.said[key] = true
		s.notices = append(s.notices, n)
	}
}

// shortWait is what taking the lock and collecting waiters for a round may take; a wait that is not longer is not told.
const shortWait = 2 * time.Second

// admitted records how long a machine has waited. It ignores waits that are shorter than the poll interval.
func (s *stats) admitted(id string, waited, poll time.Duration) {
	if waited > max(poll, shortWait) {
		if s.waited == nil {
			s.waited = map[string]bool{}
		}
		s.waited[id] = true
		s.longest = max(s.longest, waited)
	}
}

// decided records how many slots other runs used, and whether the limit was reached.
func (s *stats) decided(census Census, d Decision, own map[string]bool, waiting int) {
	others := 0
	for _, b := range census.Busy {
		if !own[b.ID] {
			others++
		}
	}
	s.others = max(s.others, others)
	if len(d.Go) < waiting {
		s.saturated = true
	}
}

// tellStuck warns about machines that do not count any more; mu is held.
func (l *Limiter) tellStuck(stuck []Busy, machines []Machine) {
	if len(stuck) == 0 {
		return
	}
	since := map[string]time.Time{}
	for _, b := range stuck {
		since[b.ID] = b.Since
	}
	for _, m := range machines {
		if at, found := since[m.ID]; found {
			text := fmt.Sprintf("Node %s has been in state %q since %s, and does not count against provisioning_limit any more. Check "+
				"the machine and its console.",
				m.Label, m.State, at.UTC().Format(time.RFC3339))
			if m.LastError != "" {
				text += " Ironic's last_error: " + m.LastError
			}
			l.stats.say("stuck:"+m.ID, Notice{"Machine is stuck", text})
		}
	}
}

// notLocked warns that the lock record cannot be written.
func (s *stats) notLocked(err error) {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	s.say("lock", Notice{"The provisioning limit applies to this run only", fmt.Sprintf(
		"Ironic does not let this user write the lock record (a chassis, or an allocation that reserves nothing) that runs use to share "+
			"one limit: %s. Machines on which other runs have started an operation still count, if this user can see them. Ask for the "+
			"right to create allocations or chassis, or set coordination = \"process\" in provisioning_limit to use no lock.", reason)})
}

// soon is the time within which Terraform starts the next resource after one has ended, including the requests before its
// operation.
const soon = 5 * time.Second

// Turned says that a machine begins because another one of its rollout has ended. How many of these work at once says nothing of
// -parallelism.
func (l *Limiter) Turned(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats.turned == nil {
		l.stats.turned = map[string]bool{}
	}
	l.stats.turned[id] = true
}

// Begin says that this process starts working on a machine, with or without a slot; End says that it has finished. From both the
// limiter detects that Terraform's -parallelism leaves slots unused: new machines follow on finished ones, but never more at once
// than before.
func (l *Limiter) Begin(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stats
	if s.machines == nil {
		s.machines = map[string]bool{}
	}
	s.working++
	if s.working > s.peak {
		s.peak, s.refills = s.working, 0
	} else if !s.machines[id] && !s.turned[id] && s.working == s.peak && time.Since(s.endedAt) < soon {
		s.refills++
	}
	s.machines[id] = true
}

// End ends what Begin started.
func (l *Limiter) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stats
	s.endedAt = time.Now()
	s.working--
	if l.limit.Max > 0 && s.refills > 1 && len(s.machines) > 2*s.peak && s.peak < l.limit.Max && !s.saturated {
		s.say("parallelism", Notice{"Slots are unused", fmt.Sprintf(
			"This run never works on more than %d of its machines at a time, and provisioning_limit.max_concurrent is %d. To use all "+
				"slots, run with -parallelism=%d or more.",
			s.peak, l.limit.Max, l.limit.Max+10)})
	}
}
