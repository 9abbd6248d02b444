package fakeoneview

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Meanwhile runs a hook before the request is looked at: between what the client read last and what it asks for now.
func Meanwhile(hook func()) Effect { return Effect{Before: hook} }

// RightAfter runs a hook when the request took effect, before its answer leaves.
func RightAfter(hook func()) Effect { return Effect{After: hook} }

// BeforeRunning runs a hook between the 202 and the check that the task begins with.
func BeforeRunning(hook func()) Effect { return Effect{BeforeRunning: hook} }

// BeforeEnd runs a hook when the task is about to end.
func BeforeEnd(hook func()) Effect { return Effect{BeforeEnd: hook} }

// Refuse answers with an error of OneView; the request has no effect.
func Refuse(status int, problem Problem) Effect {
	reply := jsonReply(status, problem.document())
	return Effect{Refuse: &reply}
}

func refuse(e *apiError) Effect { return Refuse(e.status, e.problem) }

// NotAuthorized answers 401 AUTHORIZATION. With Count Always it is a user without the right.
func NotAuthorized() Effect { return refuse(notAuthorized()) }

// BadLogin answers 400 AUTHN_AUTH_FAIL.
func BadLogin() Effect { return refuse(loginFailed()) }

// StaleETag answers 412.
func StaleETag() Effect { return refuse(staleETag()) }

// Locked answers 409: the resource is in a transitory state.
func Locked() Effect { return refuse(locked("of the request")) }

// ServerError answers 500.
func ServerError() Effect {
	return refuse(fault(http.StatusInternalServerError, "GENERIC_HTTP_500", "An internal error occurred."))
}

// Unavailable answers 503, with Retry-After unless that is negative.
func Unavailable(retryAfter time.Duration) Effect {
	return retryLater(fault(http.StatusServiceUnavailable, "GENERIC_HTTP_503", "The appliance is not available."), retryAfter)
}

// TooManyRequests answers 429 in plain text, with Retry-After unless that is negative. OneView is not known to do so; a proxy
// in front of it may.
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

// HTML puts a page in the place of the body, as proxies do; the request takes effect.
func HTML() Effect {
	return Effect{Change: func(r *Reply) {
		r.Header.Set("Content-Type", "text/html")
		r.Body = []byte("<!DOCTYPE html><html><body><h1>Please wait</h1></body></html>")
	}}
}

// EmptyBody takes the body away from the answer.
func EmptyBody() Effect { return Effect{Change: func(r *Reply) { r.Body = nil }} }

// NoLocation takes the Location away from the answer.
func NoLocation() Effect { return Effect{Change: func(r *Reply) { r.Header.Del("Location") }} }

// LocationAt puts a scheme and host in front of the Location: those of the appliance, or those of another host.
func LocationAt(base string) Effect {
	return Effect{Change: func(r *Reply) { r.Header.Set("Location", base+r.Header.Get("Location")) }}
}

// TaskURIHeader gives X-Task-URI instead of Location and body.
func TaskURIHeader() Effect {
	return Effect{Change: func(r *Reply) {
		r.Header.Set("X-Task-URI", r.Header.Get("Location"))
		r.Header.Del("Location")
		r.Body = nil
	}}
}

// editBody changes the JSON object in the body of the answer; other bodies stay.
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

// PageLoop makes nextPageUri of a list lead back to the same page.
func PageLoop() Effect {
	return editBody(func(document map[string]any) { document["nextPageUri"] = document["uri"] })
}

// TaskType changes the type of the tasks in the answer.
func TaskType(name string) Effect {
	return editBody(func(document map[string]any) { document["type"] = name })
}

// FailValidation ends the task that the request starts with an error, and nothing done.
func FailValidation(problem Problem) Effect { return Effect{FailValidation: &problem} }

// FailApply ends the task with an error and the work half done: a profile exists and holds its hardware. With hideResource the
// task never names the profile.
func FailApply(problem Problem, hideResource bool) Effect {
	return Effect{FailApply: &problem, HideResource: hideResource}
}

// Warn ends the task in state Warning; the work is done.
func Warn(problem Problem) Effect { return Effect{Warn: &problem} }

// SlowTask keeps the task in Running while so many more requests of any kind come by.
func SlowTask(requests int) Effect { return Effect{HoldRequests: requests} }

// StuckTask keeps the task in Running for ever.
func StuckTask() Effect { return Effect{StuckTask: true} }

// ForgetTask answers 404 to whoever asks for the task; its work goes on.
func ForgetTask() Effect { return Effect{ForgetTask: true} }
