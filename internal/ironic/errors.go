package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// StatusError is an answer of Ironic that refuses a request.
type StatusError struct {
	Method, URL string
	Status      int
	Message     string // Ironic's own words, without secrets
	RequestID   string // to be found in Ironic's log

	foreign bool // the words are not Ironic's but those of something before it, such as a proxy
}

// Error returns Ironic's words with the status.
func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s (%d %s)", strings.TrimSuffix(e.Message, "."), e.Status, http.StatusText(e.Status))
}

// UnknownConfigError says that the provider's configuration depends on a value that is known only after apply.
type UnknownConfigError struct{ Attribute string }

// Error names the attribute.
func (e *UnknownConfigError) Error() string {
	return fmt.Sprintf("the provider's configuration is not known yet: %s depends on something that does not exist yet", e.Attribute)
}

// EndpointError says that what answers at the endpoint, if anything, does not behave like Ironic.
type EndpointError struct {
	Endpoint string
	Err      error
}

// Error names the endpoint.
func (e *EndpointError) Error() string { return fmt.Sprintf("Ironic at %s: %v", e.Endpoint, e.Err) }

// Unwrap returns the cause.
func (e *EndpointError) Unwrap() error { return e.Err }

// AuthError says that no credentials could be obtained.
type AuthError struct {
	Auth AuthType
	Err  error
}

// Error names the way of authentication.
func (e *AuthError) Error() string { return fmt.Sprintf("authenticate by %s: %v", e.Auth, e.Err) }

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// VersionError says that a feature needs a newer API than the one in use.
type VersionError struct {
	Feature      string
	Needs        Microversion
	Have, Server Microversion // in use; highest that the server knows
}

// Error names the feature and the versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s needs API %s of Ironic, but %s is in use (the server knows up to %s)", e.Feature, e.Needs, e.Have, e.Server)
}

// FailedError says that Ironic took a node to work and gave up.
type FailedError struct {
	Node *Node // as last seen
	Goal Goal
}

// Error gives the node's state and last_error.
func (e *FailedError) Error() string {
	if e.Node.LastError == "" {
		return fmt.Sprintf("node %s is in state %q", NodeLabel(e.Node), e.Node.ProvisionState)
	}
	return fmt.Sprintf("node %s is in state %q: %s", NodeLabel(e.Node), e.Node.ProvisionState, firstLine(e.Node.LastError))
}

// InvalidNodeError says that Ironic could not deploy a node as it is.
type InvalidNodeError struct {
	Node    *Node
	Reasons []string // Ironic's own words
}

// Error gives the reasons.
func (e *InvalidNodeError) Error() string {
	return fmt.Sprintf("node %s failed to validate: %s", NodeLabel(e.Node), strings.Join(e.Reasons, "; "))
}

// TimeoutError says that a node did not get there in time. Ironic may still be at work.
type TimeoutError struct {
	Node  *Node // as last seen
	Goal  Goal
	After time.Duration
}

// Error gives the node's state and the time.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("node %s is still in state %q after %s", NodeLabel(e.Node), e.Node.ProvisionState, e.After)
}

// RefusedError says that a node's state does not allow what was asked, before anything was sent.
type RefusedError struct {
	Node   *Node
	Goal   Goal
	Reason string // and what to do
}

// Error gives the node's state and the reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("node %s is in state %q: %s", NodeLabel(e.Node), e.Node.ProvisionState, e.Reason)
}

// ReservedError says that a node is reserved for somebody else.
type ReservedError struct {
	Node *Node
	Ours string // the reservation that was expected; may be empty
}

// Error names the other reservation.
func (e *ReservedError) Error() string {
	if e.Node.InstanceUUID == "" {
		return fmt.Sprintf("node %s is not reserved by %s any more", NodeLabel(e.Node), e.Ours)
	}
	return fmt.Sprintf("node %s is reserved by %s", NodeLabel(e.Node), e.Node.InstanceUUID)
}

// QueueError says why nobody who waits for a slot of the provisioning limit is admitted any more. Nothing was sent to the node.
type QueueError struct{ Err error }

// Error gives the cause.
func (e *QueueError) Error() string {
	return fmt.Sprintf("wait for a slot of provisioning_limit: %v", e.Err)
}

// Unwrap returns the cause.
func (e *QueueError) Unwrap() error { return e.Err }

// IsNotFound reports whether Ironic answered that the object does not exist. A 404 of anything else, such as a proxy
// before it or a wrong endpoint, says nothing about objects.
func IsNotFound(err error) bool {
	var endpoint *EndpointError
	var auth *AuthError
	var queue *QueueError
	if errors.As(err, &endpoint) || errors.As(err, &auth) || errors.As(err, &queue) {
		return false
	}
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound && !status.foreign
}

// IsInterrupted reports whether the user stopped the run (Ctrl-C) before the work was done.
func IsInterrupted(err error) bool { return errors.Is(err, context.Canceled) }

func isStatus(err error, code int, text string) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == code && strings.Contains(status.Message, text)
}

// isTransient reports whether asking again later may help: a poll that fails so goes on.
func isTransient(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return isConnectionLoss(err) || errors.Is(err, errShifted)
	}
	switch status.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return isConductorDown(status.Message) || isCapacity(status.Message)
	case http.StatusConflict:
		return isLocked(status.Message)
	}
	return false
}

// wrap turns gophercloud's error for a refused request into a StatusError without secrets, and that for a token that could
// not be renewed into an AuthError.
func (c *Client) wrap(err error) error {
	var reauth *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &reauth) {
		return c.authError(reauth.ErrReauth)
	}
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		return c.statusError(code)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the answer is not JSON (%w)", err)
	}
	return err
}

// authError is wrap for what Keystone answers.
func (c *Client) authError(err error) error {
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		err = c.statusError(code)
	}
	return &AuthError{Auth: AuthKeystone, Err: err}
}

// statusError keeps only the first line of an answer: schema errors dump whole documents behind it.
func (c *Client) statusError(code gophercloud.ErrUnexpectedResponseCode) *StatusError {
	return &StatusError{
		Method: code.Method, URL: c.secrets.redact(code.URL), Status: code.Actual,
		Message: firstLine(c.secrets.redact(faultText(code.Body))), RequestID: code.ResponseHeader.Get("Openstack-Request-Id"),
		foreign: !spoken(code.Body),
	}
}

// spoken reports whether the body of an error is Ironic's (reference ironic-facts.md 1.2).
func spoken(body []byte) bool {
	var outer struct {
		ErrorMessage jsonRaw `json:"error_message"`
	}
	return json.Unmarshal(body, &outer) == nil && len(outer.ErrorMessage) > 0
}

// faultText digs Ironic's words out of an error body: a string that holds JSON, an object, or plain text (reference
// ironic-facts.md 1.2).
func faultText(body []byte) string {
	var outer struct {
		ErrorMessage jsonRaw `json:"error_message"`
		Error        struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return htmlTitle(string(body))
	}
	if outer.Error.Message != "" {
		return outer.Error.Message
	}
	inner := []byte(outer.ErrorMessage)
	var text string
	if json.Unmarshal(inner, &text) == nil {
		inner = []byte(text)
	}
	var fault struct {
		Faultstring string `json:"faultstring"`
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	if json.Unmarshal(inner, &fault) != nil {
		return text
	}
	for _, s := range []string{fault.Faultstring, fault.Description, fault.Title} {
		if s != "" {
			return s
		}
	}
	return ""
}

// htmlTitle shortens a web page, which some proxy sent instead of Ironic, to its title.
func htmlTitle(text string) string {
	_, after, found := strings.Cut(text, "<title>")
	title, _, closed := strings.Cut(after, "</title>")
	if found && closed {
		return "a web page, not Ironic's API: " + strings.TrimSpace(title)
	}
	if strings.Contains(strings.ToLower(text), "<html") {
		return "a web page, not Ironic's API"
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// jsonRaw is json.RawMessage whose zero value decodes to nothing.
type jsonRaw []byte

// UnmarshalJSON keeps the bytes.
func (r *jsonRaw) UnmarshalJSON(b []byte) error { *r = append((*r)[:0], b...); return nil }

func (r jsonRaw) into(v any) error {
	if len(r) == 0 {
		return nil
	}
	return json.Unmarshal(r, v)
}

// secrets are strings that must not appear in any text that leaves this package.
type secrets struct {
	mu     sync.Mutex
	values []string // the longest first: one may be a part of another
}

// hide adds a secret. One of under four characters would tear holes into ordinary words, and is left alone.
func (s *secrets) hide(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(value) >= 4 && !slices.Contains(s.values, value) {
		s.values = append(s.values, value)
		slices.SortStableFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	}
}

func (s *secrets) redact(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range s.values {
		text = strings.ReplaceAll(text, value, "******")
	}
	return text
}
