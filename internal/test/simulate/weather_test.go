package simulate_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

var weatherSeeds = seedsFlag("weather", "1-15", "which lives TestSimulate_weather lives")

// Whatever outages, slow answers, clocks that differ and jump, and made-up notes there are: no more machines than the limit says have an
// operation in progress, no more members of a group are away than may be, no plan hides a wipe, and when the weather is fine again, all
// becomes as configured.
func TestSimulate_weather(t *testing.T) {
	t.Parallel()
	for seed := range seedsOf(t, weatherSeeds) {
		t.Run(fmt.Sprintf("lives/%d", seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				l := begin(seed)
				l.only = onlyWeather
				l.live(t, seed)
			})
		})
		t.Run(fmt.Sprintf("rollouts/%d", seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveRollouts(t, seed, onlyWeather) })
		})
	}
}

// Kinds of trouble that are the only ones of a life.
const (
	onlyLists   = "lists"
	onlyWeather = "weather"
)

// weather is what the site's answers are like, besides what they say.
type weather struct {
	mu     sync.Mutex
	silent map[string]time.Time // until when the runs of a workspace get no answer; "": all
	ahead  time.Duration        // how far the clock of one of two API hosts is ahead
	slow   time.Duration        // how long answers take at most, besides the latency
}

// badWeather chooses what a run meets.
func (s *site) badWeather() (d trouble) {
	kind := s.below(8)
	if kind < 4 || kind == 7 {
		d.outage = time.Duration(10+s.below(20*60)) * time.Second
		if s.below(2) == 0 {
			d.outage = time.Duration(10+s.below(80)) * time.Second
		}
		d.alone = s.below(2) == 0
	}
	if kind >= 3 && kind < 6 {
		d.jumps = true
	}
	if kind == 5 || kind == 6 {
		d.forged = true
	}
	if kind == 6 && s.below(2) == 0 {
		d.slow = time.Duration(1+s.below(45)) * time.Second
	}
	if s.below(5) == 0 {
		d.kill, d.after = 1+s.below(30), s.below(2) == 0
	}
	return d
}

// brew begins the weather of a run, and returns a function that ends it.
func (s *site) brew(t *testing.T, d trouble, space *workspace) (end func()) {
	t.Helper()
	w, of := &s.weather, ""
	if d.alone {
		of = space.name
	}
	var timers []*time.Timer
	after := func(do func()) {
		timers = append(timers, time.AfterFunc(time.Duration(s.below(int(6*s.fake.StepTime+10*s.latency))), do))
	}
	if d.outage > 0 {
		after(func() {
			s.tell("an outage of %s for %q", d.outage, of)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.silent == nil {
				w.silent = map[string]time.Time{}
			}
			w.silent[of] = time.Now().Add(d.outage)
		})
	}
	if d.jumps {
		for range 1 + s.below(3) {
			ahead := time.Duration(s.below(8*3600)-4*3600) * time.Second
			after(func() {
				s.tell("the clock of an API host is ahead by %s", ahead)
				w.mu.Lock()
				defer w.mu.Unlock()
				w.ahead = ahead
			})
		}
	}
	forget := func() {}
	if d.forged {
		forget = s.forge(t)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = max(w.slow, d.slow)
	return func() {
		for _, timer := range timers {
			timer.Stop()
		}
		forget()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.silent, w.ahead, w.slow = nil, 0, 0
	}
}

// forge lets another client write a note that it has made up, and returns a function that removes it unless a run has.
func (s *site) forge(t *testing.T) (forget func()) {
	t.Helper()
	nodes := s.fake.Nodes()
	if len(nodes) == 0 {
		return func() {}
	}
	n := nodes[s.below(len(nodes))]
	at := []string{"1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2099-01-01T00:00:00Z"}[s.below(3)]
	key, value := "terraform_metal_turn", any(object{
		"group": "databases", "run": "0000", "since": at, "until": at, "instance": n.InstanceUUID,
	})
	switch s.below(6) {
	case 0:
		value = object{"group": "databases", "run": "0000", "since": at, "instance": n.InstanceUUID, "max_unavailable": 1}
	case 1:
		key, value = "terraform_metal_ready", object{"since": at, "target": "tcp://192.0.2.1:22"}
	case 2:
		key, value = "terraform_metal_operation", object{"0000": object{"run": "0000", "since": at, "command": "undeploy", "by": "x"}}
	case 3:
		key, value = "terraform_metal_erasure", object{"at": at, "run": "0000"}
	case 4:
		key, value = "terraform_metal_host_turn", object{"group": "databases", "run": "0000", "since": at, "until": at, "service": true}
	}
	status, _ := s.call(t, http.MethodPatch, "nodes/"+n.UUID, []object{{"op": "add", "path": "/extra/" + key, "value": value}})
	s.tell("another client makes up %s of %s: %v -> %d", key, n.Name, value, status)
	return func() {
		for range 100 { // a conductor may hold the node
			now, _ := s.fake.Node(n.UUID)
			extra, _ := now.Raw["extra"].(object)
			if extra[key] == nil || fmt.Sprint(extra[key]) != fmt.Sprint(value) {
				return
			}
			s.call(t, http.MethodPatch, "nodes/"+n.UUID, []object{{"op": "remove", "path": "/extra/" + key}})
			time.Sleep(time.Second)
		}
	}
}

// isSilent reports whether a run gets no answers.
func (w *weather) isSilent(run string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	space, _, _ := strings.Cut(run, "/")
	return time.Now().Before(w.silent[""]) || time.Now().Before(w.silent[space])
}

// delay returns how long an answer takes at most.
func (w *weather) delay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slow
}

// date gives an answer the time of one of two API hosts.
func (s *site) date(resp *http.Response) {
	s.weather.mu.Lock()
	ahead := s.weather.ahead
	s.weather.mu.Unlock()
	if ahead != 0 && s.below(2) == 0 {
		resp.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}
}
