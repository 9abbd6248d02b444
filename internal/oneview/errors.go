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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
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

// Kinds of errors.
const (
	KindTask    fault.Kind = "OneView task"     // the appliance accepted an operation, and its task failed
	KindTimeout fault.Kind = "OneView time-out" // an operation has not ended in time: the appliance may continue it
	KindLogin   fault.Kind = "OneView login"    // the appliance has refused the login
	KindVersion fault.Kind = "OneView version"  // the appliance and this program have no version of the API in common

	kindBody       fault.Kind = "OneView body"       // an answer is not JSON
	kindConnection fault.Kind = "OneView connection" // the client has received no complete answer
	// kindUnanswered: the appliance does not answer which versions it supports, though the client has waited.
	kindUnanswered fault.Kind = "OneView unanswered"
)

// Late returns the error of KindTimeout for an operation, such as "applying server profile web-0".
func Late(doing string, after time.Duration) error {
	return &fault.Error{
		Kind: KindTimeout,
		Fact: fmt.Sprintf("%s has not ended after %s. OneView may continue it. Run again to continue from there", doing,
			after.Round(time.Second)),
	}
}

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
	return isFromAppliance(err) && !fault.Is(err, KindLogin) &&
		(IsStatus(err, http.StatusForbidden) || IsStatus(err, http.StatusUnauthorized))
}

// IsTransient reports whether a later repetition may succeed: the appliance was not reachable or busy, or the resource was locked.
// The request may have had an effect; see IsUncertain.
func IsTransient(err error) bool {
	if fault.Is(err, kindUnanswered) {
		return false
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
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
	return fault.As(err, kindBody, kindConnection) != nil
}

func isFromAppliance(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && !status.foreign
}

// IsUncertain reports whether a request may have had an effect although it failed with err.
func IsUncertain(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		refused := status.Status == http.StatusServiceUnavailable && !status.foreign // the appliance itself has answered 503
		return (status.Status >= http.StatusInternalServerError && !refused) || status.Status == http.StatusRequestTimeout
	}
	return IsTransient(err) || errors.Is(err, errNoTask)
}

// RetryAfter returns the time to wait that the appliance has asked for; zero: none.
func RetryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.RetryAfter
	}
	return 0
}

// unreachable wraps the error of a request without an answer. It omits the URL, which the message contains already.
func (c *Client) unreachable(err error) error {
	if redirect, ok := errors.AsType[*rest.RedirectError](err); ok {
		redirect.Root, redirect.Setting = "/rest", c.cfg.called("endpoint")
		return redirect
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	fact := fmt.Sprintf("OneView at %s: %v", c.base.Host, err)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		fact += ". Set " + c.cfg.called("cacert_file") + " to the certificate of the authority that signed the appliance's"
	}
	return &fault.Error{Kind: kindConnection, Fact: fact, Err: err}
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
