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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// Problem is an error that OneView describes in the body of an answer or in a task.
type Problem struct {
	Code    string    `json:"errorCode"` // such as ProfileAlreadyExistsInServer
	Message string    `json:"message"`
	Details string    `json:"details"`
	Actions []string  `json:"recommendedActions"`
	Nested  []Problem `json:"nestedErrors"`
}

// String returns the message, with the error code of OneView's documentation, details and recommended actions.
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

// linkPattern matches the name of a resource in a message of OneView: {"name":"Encl1, bay 3", "uri":"/rest/..."}.
var linkPattern = regexp.MustCompile(`\{"name":\s*"([^"]*)",\s*"uri":\s*"([^"]*)"\}`)

// plain replaces the links in a message of OneView with text.
func plain(text string) string {
	return strings.TrimSpace(linkPattern.ReplaceAllString(text, "$1 ($2)"))
}

// StatusError is an answer of the appliance that refuses a request.
type StatusError struct {
	Method, Path string
	Status       int
	Problem      Problem       // the error as OneView describes it, without secrets
	RetryAfter   time.Duration // from the header Retry-After; zero: none

	foreign bool // the answer is not from OneView, but from a proxy, for example
}

// Error returns the request, the status and OneView's description.
func (e *StatusError) Error() string {
	status := fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Status, http.StatusText(e.Status))
	text := e.Problem.String()
	switch {
	case e.foreign:
		return status + ", not from OneView. Check endpoint, and the proxies between this machine and the appliance"
	case e.Status == http.StatusUnauthorized:
		return status + ": " + text + " The login works, so the user lacks the right to do this: give it a role that may manage servers"
	case text == "":
		return status
	}
	return status + ": " + text
}

// TaskError says that the appliance accepted an operation, and that its task failed.
type TaskError struct {
	Name        string // Create, Delete, Update, Power off, ...
	State       TaskState
	Status      string // the task's own summary
	Problems    []Problem
	TaskURI     string
	ResourceURI string // resource of the operation; empty if there is none yet
}

// Error returns the task's name, state, problems and URI.
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

// TimeoutError says that an operation has not ended in time. The appliance may continue it.
type TimeoutError struct {
	Doing string // such as "applying server profile web-0"
	After time.Duration
}

// Error names the operation and how long it has taken.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s has not ended after %s. OneView may continue it. Run again to continue from there", e.Doing, e.After.Round(time.Second))
}

// LoginError says that the appliance has refused the login.
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

// VersionError says that the appliance and this program have no version of the API in common.
type VersionError struct {
	Lowest, Highest int    // versions that the appliance supports
	Configured      int    // upper bound; zero: none
	Setting         string // the user's name of that bound
}

// Error names the versions of both sides.
func (e *VersionError) Error() string {
	ours := fmt.Sprintf("this program supports %d to %d", oldestVersion, testedVersion)
	if e.Configured != 0 {
		ours = fmt.Sprintf("%s allows none above %d", e.Setting, e.Configured)
	}
	return fmt.Sprintf("the OneView appliance supports versions %d to %d of its API, but %s", e.Lowest, e.Highest, ours)
}

// bodyError says that an answer is not JSON.
type bodyError struct{ err error }

// Error says what to check.
func (e *bodyError) Error() string {
	return fmt.Sprintf("the answer is not from OneView: %v. Check endpoint, and the proxies between this machine and the appliance", e.err)
}

// Unwrap returns the cause.
func (e *bodyError) Unwrap() error { return e.err }

// IsNotFound reports whether the appliance answered that the resource does not exist. A 404 of a proxy does not count.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound && !status.foreign
}

// IsStatus reports whether the answer was a refusal with the given HTTP status.
func IsStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == code
}

// IsForbidden reports whether the appliance has accepted the login, but the user lacks the permission for a request. The appliance
// mostly answers 401 then, as after the end of a session (reference/oneview.md#errors-of-the-appliance); the client has logged in
// again before it returns such an error.
func IsForbidden(err error) bool {
	var login *LoginError
	return isFromAppliance(err) && !errors.As(err, &login) && (IsStatus(err, http.StatusForbidden) || IsStatus(err, http.StatusUnauthorized))
}

// IsTransient reports whether a later repetition may succeed: the appliance was not reachable or busy, or the resource was locked.
// The request may have had an effect; see IsUncertain.
func IsTransient(err error) bool {
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

// isFromAppliance reports whether the appliance itself has refused a request.
func isFromAppliance(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && !status.foreign
}

// IsUncertain reports whether a request may have had an effect although it failed with err.
func IsUncertain(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		refused := status.Status == http.StatusServiceUnavailable && !status.foreign // the appliance itself has answered 503
		return (status.Status >= http.StatusInternalServerError && !refused) || status.Status == http.StatusRequestTimeout
	}
	return IsTransient(err) || errors.Is(err, errNoTask)
}

// RetryAfter returns the time to wait that the appliance has asked for; zero: none.
func RetryAfter(err error) time.Duration {
	var status *StatusError
	if errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}

// connectionError says that the client has received no complete answer.
type connectionError struct {
	host string
	err  error
	ca   string // the user's name of cacert_file
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

// unansweredError says that an appliance has not answered which versions of the API it supports. The client has waited for it already.
type unansweredError struct{ err error }

// Error returns the error of the last try.
func (e *unansweredError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *unansweredError) Unwrap() error { return e.err }

// unreachable wraps the error of a request without an answer. It omits the URL, which the message contains already.
func (c *Client) unreachable(err error) error {
	var redirect *rest.RedirectError
	if errors.As(err, &redirect) {
		redirect.Root, redirect.Setting = "/rest", c.cfg.called("endpoint")
		return redirect
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return &connectionError{host: c.base.Host, err: err, ca: c.cfg.called("cacert_file")}
}

// refused returns the StatusError of an answer with a status from 300 on.
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

// redact removes secrets from the appliance's description of an error.
func (c *Client) redact(p *Problem) {
	hide := func(text *string) { *text = c.cfg.Secrets.Redact(*text) }
	hide(&p.Message)
	hide(&p.Details)
	for i := range p.Actions {
		hide(&p.Actions[i])
	}
	for i := range p.Nested {
		c.redact(&p.Nested[i])
	}
}
