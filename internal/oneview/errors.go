package oneview

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Problem is an error as OneView describes it, in the body of an answer or in a task.
type Problem struct {
	Code    string    `json:"errorCode"` // such as ProfileAlreadyExistsInServer
	Message string    `json:"message"`
	Details string    `json:"details"`
	Actions []string  `json:"recommendedActions"`
	Nested  []Problem `json:"nestedErrors"`
}

// String is all that the problem says, with the code that OneView's documentation has it under.
func (p Problem) String() string {
	text := plain(p.Message)
	if text == "" {
		text = p.Code
	} else if p.Code != "" {
		text += " [" + p.Code + "]"
	}
	if p.Details != "" && p.Details != p.Message && !strings.Contains(p.Message, p.Details) {
		text += " (" + strings.TrimSuffix(plain(p.Details), ".") + ")"
	}
	for _, nested := range p.Nested {
		text += "; " + nested.String()
	}
	if len(p.Actions) > 0 {
		text += " OneView recommends: " + plain(strings.Join(p.Actions, " "))
	}
	return strings.TrimSpace(text)
}

// linkPattern is how messages of OneView name a resource: {"name":"Encl1, bay 3", "uri":"/rest/..."}.
var linkPattern = regexp.MustCompile(`\{"name":\s*"([^"]*)",\s*"uri":\s*"([^"]*)"\}`)

// plain writes the links in a message of OneView as text.
func plain(text string) string {
	return strings.TrimSpace(linkPattern.ReplaceAllString(text, "$1 ($2)"))
}

// StatusError is an answer of the appliance that refuses a request.
type StatusError struct {
	Method, Path string
	Status       int
	Problem      Problem       // OneView's own words, without secrets
	RetryAfter   time.Duration // how long it asked to wait; zero: it did not

	foreign bool // the words are not OneView's but those of something before it, such as a proxy
}

// Error returns OneView's words with the status.
func (e *StatusError) Error() string {
	status := fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Status, http.StatusText(e.Status))
	text := e.Problem.String()
	switch {
	case e.foreign:
		return status + ", not from OneView; check endpoint, and what is between here and the appliance"
	case e.Status == http.StatusUnauthorized:
		return status + ": " + text + " The login works, so the user lacks the right to do this: give it a role that may manage servers"
	case text == "":
		return status
	}
	return status + ": " + text
}

// TaskError says that the appliance accepted an operation and then gave it up.
type TaskError struct {
	Name        string // Create, Delete, Update, Power off, ...
	State       TaskState
	Status      string // the task's own summary
	Problems    []Problem
	TaskURI     string
	ResourceURI string // what it had made or worked on; empty: it had not come to that
}

// Error returns the problems.
func (e *TaskError) Error() string {
	var said []string
	for _, problem := range e.Problems {
		said = append(said, problem.String())
	}
	if len(said) == 0 {
		said = append(said, plain(e.Status))
	}
	return fmt.Sprintf("OneView's task %q ended in state %s: %s (%s)", e.Name, e.State, strings.Join(said, "; "), e.TaskURI)
}

// TimeoutError says that an operation was not over in time. The appliance may still be at work.
type TimeoutError struct {
	Doing string // such as "applying server profile web-0"
	After time.Duration
}

// Error says what took too long.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s is not over after %s; OneView may still be at work on it, and the next run goes on from there", e.Doing, e.After.Round(time.Second))
}

// LoginError says that the appliance does not let the user in.
type LoginError struct {
	Username, Domain string
	Err              error
}

// Error names the user.
func (e *LoginError) Error() string {
	user := e.Username
	if e.Domain != "" {
		user += " of domain " + e.Domain
	}
	return fmt.Sprintf("log in to OneView as %s: %s. Check username, password and domain", user, strings.TrimSuffix(e.Err.Error(), "."))
}

// Unwrap returns the cause.
func (e *LoginError) Unwrap() error { return e.Err }

// VersionError says that there is no version of the API that both sides speak.
type VersionError struct {
	Lowest, Highest int    // that the appliance speaks
	Configured      int    // upper bound; zero: none
	Setting         string // what the user calls that bound
}

// Error names the versions.
func (e *VersionError) Error() string {
	ours := fmt.Sprintf("this program those from %d to %d", oldestVersion, testedVersion)
	if e.Configured != 0 {
		ours = fmt.Sprintf("%s allows none above %d", e.Setting, e.Configured)
	}
	return fmt.Sprintf("the OneView appliance speaks versions %d to %d of its API, %s", e.Lowest, e.Highest, ours)
}

// bodyError says that an answer is not JSON.
type bodyError struct{ err error }

// Error says so.
func (e *bodyError) Error() string {
	return fmt.Sprintf("the answer is not OneView's: %v; check endpoint, and what is between here and the appliance", e.err)
}

// Unwrap returns the cause.
func (e *bodyError) Unwrap() error { return e.err }

// IsNotFound reports whether the appliance answered that the resource does not exist. A 404 of anything else, such as a
// proxy before it, says nothing about resources.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound && !status.foreign
}

func isStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == code
}

// isForbidden reports whether the appliance, which has let the user in, does not let them do something. It says so mostly with the
// 401 of a session that has ended (reference oneview.md 1.2); but then the client has logged in anew.
func isForbidden(err error) bool {
	var login *LoginError
	return isFromAppliance(err) && !errors.As(err, &login) && (isStatus(err, http.StatusForbidden) || isStatus(err, http.StatusUnauthorized))
}

// isTransient reports whether asking again later may help: the appliance was out of reach, busy, or the resource locked.
// It does not tell whether a request had an effect.
func isTransient(err error) bool {
	var unanswered *unansweredError
	if errors.As(err, &unanswered) {
		return false
	}
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Status {
		case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	if errors.As(err, &certificate) || (errors.As(err, &dns) && dns.IsNotFound) {
		return false
	}
	var body *bodyError
	var connection *connectionError
	return errors.As(err, &body) || errors.As(err, &connection)
}

// isFromAppliance reports whether an appliance has refused a request in its own words.
func isFromAppliance(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && !status.foreign
}

// isUncertain reports whether a request that failed with err may have had an effect all the same.
func isUncertain(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		refused := status.Status == http.StatusServiceUnavailable && !status.foreign // by the appliance itself
		return (status.Status >= http.StatusInternalServerError && !refused) || status.Status == http.StatusRequestTimeout
	}
	return isTransient(err) || errors.Is(err, errNoTask)
}

// retryAfter is how long the appliance asked to wait.
func retryAfter(err error) time.Duration {
	var status *StatusError
	if errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}

// connectionError says that no complete answer came.
type connectionError struct {
	host string
	err  error
	ca   string // what the user calls cacert_file
}

// Error says what to check.
func (e *connectionError) Error() string {
	var certificate *tls.CertificateVerificationError
	text := fmt.Sprintf("OneView at %s: %v", e.host, e.err)
	if errors.As(e.err, &certificate) {
		return text + ". Set " + e.ca + " to the certificate of the authority that signed the appliance's"
	}
	return text
}

// Unwrap returns the cause.
func (e *connectionError) Unwrap() error { return e.err }

// unansweredError says that an appliance could not be asked which API it speaks, and that it has been waited for.
type unansweredError struct{ err error }

// Error is that of the last try.
func (e *unansweredError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *unansweredError) Unwrap() error { return e.err }

// unreachable wraps the error of a request that was not answered. The URL is left out of it; it says nothing new.
func (c *Client) unreachable(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return &connectionError{host: c.base.Host, err: err, ca: c.cfg.called("cacert_file")}
}

// refused turns an answer with a status from 300 on into a StatusError.
func (c *Client) refused(r request, resp *http.Response, body []byte) error {
	refused := &StatusError{Method: r.method, Path: r.path, Status: resp.StatusCode}
	if err := json.Unmarshal(body, &refused.Problem); err != nil || (refused.Problem.Code == "" && refused.Problem.Message == "") {
		refused.foreign = true
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		refused.RetryAfter = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(resp.Header.Get("Retry-After")); err == nil {
		refused.RetryAfter = max(time.Until(date), 0)
	}
	c.redact(&refused.Problem)
	return refused
}

// redact takes the password out of what the appliance says.
func (c *Client) redact(p *Problem) {
	hide := func(text *string) { *text = strings.ReplaceAll(*text, c.cfg.Password, "******") }
	hide(&p.Message)
	hide(&p.Details)
	for i := range p.Actions {
		hide(&p.Actions[i])
	}
	for i := range p.Nested {
		c.redact(&p.Nested[i])
	}
}

// NoProfileError says that a node whose hardware is shared is to get an instance, and has no server profile.
type NoProfileError struct{ Node string }

// Error says what to do.
func (e *NoProfileError) Error() string {
	return fmt.Sprintf("node %s has no server profile: its server would boot without OneView's networks, and other users could take it at any moment. "+
		"Give it a metal_oneview_profile, and let its metal_deployment depend on that", e.Node)
}
