package fakeoneview

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// Always is a Fault.Count without limit.
const Always = -1

// Fault selects the requests that an Effect hits. Each fault counts its requests on its own. If several faults hit a request,
// all effects apply in the order of injection, but only the first refusal.
type Fault struct {
	Method string // empty means any
	Path   string // regular expression for the path; empty means any
	Nth    int    // number of the first matching request to hit, from 1; zero means 1
	Count  int    // number of requests to hit; zero means 1, Always means no limit
	Effect Effect
}

// Effect changes a request that a fault hits, or the task that the request starts. The functions run without the Server's lock
// and may call it. Common effects have constructors: Refuse, LoseAnswer, FailValidation, ...
type Effect struct {
	Before func()       // runs before the appliance handles the request
	Refuse *Reply       // replaces the answer; the request has no effect, or has it only later: see Late
	Change func(*Reply) // changes the answer after the request took effect
	After  func()       // runs after the request took effect and before the answer

	// Late, with Refuse, lets the request take effect that much later, as behind a proxy that has answered 504 meanwhile.
	Late time.Duration

	BeforeRunning  func()   // runs between the answer and the first check of the task
	BeforeEnd      func()   // runs right before the task ends
	FailValidation *Problem // fails the task without any effect
	FailApply      *Problem // fails the task with the work half done: the profile exists on its hardware
	Warn           *Problem // ends the task in state Warning with the work done
	HideResource   bool     // never shows resourceUri in the task
	HoldRequests   int      // keeps the task in Running until the appliance has received this number of further requests
	StuckTask      bool     // keeps the task in Running forever
	ForgetTask     bool     // answers 404 to requests for the task
}

type injected struct {
	Fault
	path *regexp.Regexp
	seen int
	hits int
}

// Inject adds a fault. The returned function returns the number of requests that the fault has hit. Inject panics if Path is
// not a valid regular expression.
func (s *Server) Inject(f Fault) (hits func() int) {
	added := &injected{Fault: f, path: regexp.MustCompile(f.Path)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, added)
	return func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return added.hits
	}
}

// ClearFaults removes all faults. Their effects on tasks in progress stay.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) strike(r *http.Request) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	var effects []Effect
	for _, f := range s.faults {
		if (f.Method != "" && f.Method != r.Method) || !f.path.MatchString(r.URL.Path) {
			continue
		}
		f.seen++
		first, count := max(f.Nth, 1), f.Count
		if count == 0 {
			count = 1
		}
		if f.seen >= first && (count == Always || f.seen < first+count) {
			f.hits++
			effects = append(effects, f.Effect)
		}
	}
	return effects
}

// Meanwhile runs a hook before the appliance handles the request, so after the client's last read.
func Meanwhile(hook func()) Effect { return Effect{Before: hook} }

// RightAfter runs a hook after the request took effect and before the answer.
func RightAfter(hook func()) Effect { return Effect{After: hook} }

// BeforeRunning runs a hook between the 202 and the first check of the task.
func BeforeRunning(hook func()) Effect { return Effect{BeforeRunning: hook} }

// BeforeEnd runs a hook right before the task ends.
func BeforeEnd(hook func()) Effect { return Effect{BeforeEnd: hook} }

// Refuse answers with an error of OneView; the request has no effect.
func Refuse(status int, problem Problem) Effect {
	reply := jsonReply(status, problem.document())
	return Effect{Refuse: &reply}
}

func refuse(e *apiError) Effect { return Refuse(e.status, e.problem) }

// NotAuthorized answers 401 AUTHORIZATION. With Count Always the user lacks the permission.
func NotAuthorized() Effect { return refuse(notAuthorized()) }

// BadLogin answers 400 AUTHN_AUTH_FAIL.
func BadLogin() Effect { return refuse(loginFailed()) }

// StaleETag answers 412.
func StaleETag() Effect { return refuse(staleETag()) }

// Locked answers 409: another operation has locked the resource.
func Locked() Effect { return refuse(locked("of the request")) }

// ServerError answers 500.
func ServerError() Effect {
	return refuse(fault(http.StatusInternalServerError, "GENERIC_HTTP_500", "An internal error occurred."))
}

// Unavailable answers 503, with Retry-After in whole seconds unless retryAfter is negative.
func Unavailable(retryAfter time.Duration) Effect {
	return retryLater(fault(http.StatusServiceUnavailable, "GENERIC_HTTP_503", "The appliance is not available."), retryAfter)
}

// TooManyRequests answers 429 in plain text, with Retry-After in whole seconds unless retryAfter is negative. OneView is not
// known to do so; a proxy may.
func TooManyRequests(retryAfter time.Duration) Effect {
	e := retryLater(fault(http.StatusTooManyRequests, "", ""), retryAfter)
	e.Refuse.Header.Set("Content-Type", "text/plain")
	e.Refuse.Body = []byte("Too Many Requests\n")
	return e
}

func retryLater(e *apiError, after time.Duration) Effect {
	effect := refuse(e)
	if after >= 0 {
		effect.Refuse.Header.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	}
	return effect
}

// Drop breaks the connection; the request has no effect.
func Drop() Effect { return Effect{Refuse: &Reply{Drop: true}} }

// LoseAnswer breaks the connection after the request took effect.
func LoseAnswer() Effect { return Effect{Change: func(r *Reply) { r.Drop = true }} }

// Late answers 504 and lets the request take effect later.
func Late(after time.Duration) Effect {
	return Effect{Refuse: &Reply{Status: http.StatusGatewayTimeout, Body: []byte("<html>504 Gateway Time-out</html>")}, Late: after}
}

// HTML replaces the body by an HTML page, as proxies do; the request takes effect.
func HTML() Effect {
	return Effect{Change: func(r *Reply) {
		r.Header.Set("Content-Type", "text/html")
		r.Body = []byte("<!DOCTYPE html><html><body><h1>Please wait</h1></body></html>")
	}}
}

// EmptyBody removes the body of the answer.
func EmptyBody() Effect { return Effect{Change: func(r *Reply) { r.Body = nil }} }

// NoLocation removes the Location of the answer.
func NoLocation() Effect { return Effect{Change: func(r *Reply) { r.Header.Del("Location") }} }

// LocationAt makes the Location absolute: base is a scheme and host, of the appliance or of another server.
func LocationAt(base string) Effect {
	return Effect{Change: func(r *Reply) { r.Header.Set("Location", base+r.Header.Get("Location")) }}
}

// TaskURIHeader replaces Location and body by the header X-Task-URI.
func TaskURIHeader() Effect {
	return Effect{Change: func(r *Reply) {
		r.Header.Set("X-Task-URI", r.Header.Get("Location"))
		r.Header.Del("Location")
		r.Body = nil
	}}
}

// editBody changes the JSON object in the body of the answer. It does not change other bodies.
func editBody(edit func(document map[string]any)) Effect {
	return Effect{Change: func(r *Reply) {
		var document map[string]any
		if json.Unmarshal(r.Body, &document) != nil || document == nil {
			return
		}
		edit(document)
		r.Body = jsonReply(r.Status, document).Body
	}}
}

// PageLoop sets nextPageUri of a list to the page itself.
func PageLoop() Effect {
	return editBody(func(document map[string]any) { document["nextPageUri"] = document["uri"] })
}

// TaskType changes the type of the tasks in the answer.
func TaskType(name string) Effect {
	return editBody(func(document map[string]any) { document["type"] = name })
}

// FailValidation fails the task that the request starts, without any effect.
func FailValidation(problem Problem) Effect { return Effect{FailValidation: &problem} }

// FailApply fails the task with the work half done: the profile exists on its hardware. With hideResource the task never has
// the URI of the profile.
func FailApply(problem Problem, hideResource bool) Effect {
	return Effect{FailApply: &problem, HideResource: hideResource}
}

// Warn ends the task in state Warning with the work done.
func Warn(problem Problem) Effect { return Effect{Warn: &problem} }

// SlowTask keeps the task in Running until the appliance has received this number of further requests.
func SlowTask(requests int) Effect { return Effect{HoldRequests: requests} }

// StuckTask keeps the task in Running forever.
func StuckTask() Effect { return Effect{StuckTask: true} }

// ForgetTask answers 404 to requests for the task, which continues.
func ForgetTask() Effect { return Effect{ForgetTask: true} }
