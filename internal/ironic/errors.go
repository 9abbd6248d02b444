package ironic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rest"
)

// StatusError is an answer by which Ironic refuses a request.
type StatusError struct {
	Method, URL string
	Status      int
	Message     string // Ironic's message, without secrets
	RequestID   string // identifies the request in Ironic's log
	Project     string // ID of the project of the user; empty without one

	Foreign bool // the message is not from Ironic but from a server in front of it, such as a proxy
}

// Error returns Ironic's message with the status.
func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s %s: %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s (%d %s)", strings.TrimSuffix(e.Message, "."), e.Status, http.StatusText(e.Status))
}

// VersionError says that a feature needs a newer API version than the one in use.
type VersionError struct {
	Feature      string
	Needs        Microversion
	Have, Server Microversion // in use; the highest that the server supports
}

// Error names the feature and the versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s needs API %s of Ironic, but %s is in use (the server supports up to %s)", e.Feature, e.Needs, e.Have, e.Server)
}

// Advice says what to do.
func (e *VersionError) Advice() string {
	if e.Server >= e.Needs {
		return fmt.Sprintf("Raise microversion in the provider block to at least %q, or remove it.", e.Needs)
	}
	return "Upgrade Ironic, or remove the setting."
}

// PathError says that a name cannot be sent as part of a path: servers and proxies take "." and ".." for a step in the path, however they
// are escaped, so that the request would be about another object.
type PathError struct{ Name string }

// Error names the name.
func (e *PathError) Error() string {
	return fmt.Sprintf("%q cannot be the name of an object in a request. Use its UUID", e.Name)
}

// unaddressable returns a PathError for a URL with such a name.
func unaddressable(u *url.URL) error {
	for name := range strings.SplitSeq(u.EscapedPath(), "/") {
		if plain, err := url.PathUnescape(name); err == nil && (plain == "." || plain == "..") {
			return &PathError{Name: plain}
		}
	}
	return nil
}

// IsNotFound reports whether Ironic answered that the object does not exist. A 404 from another server, such as a proxy or a wrong
// endpoint, does not count.
func IsNotFound(err error) bool {
	var elsewhere interface{ Elsewhere() }
	if errors.As(err, &elsewhere) {
		return false
	}
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound && !status.Foreign
}

// IsInterrupted reports whether the user stopped the run (Ctrl-C) before the operation was finished.
func IsInterrupted(err error) bool { return errors.Is(err, context.Canceled) }

// IsStatus reports whether Ironic answered with a status and a message that contains text.
func IsStatus(err error, code int, text string) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == code && strings.Contains(status.Message, text)
}

// IsLocked reports whether Ironic refused a request because a conductor has locked the node.
func IsLocked(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusConflict && isLocked(status.Message)
}

// IsTransient reports whether repeating the request later may succeed.
func IsTransient(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return IsConnectionLoss(err) || errors.Is(err, errShifted)
	}
	switch status.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return isConductorDown(status.Message) || IsCapacity(status.Message)
	case http.StatusConflict:
		return IsLocked(err)
	}
	return false
}

// MayPass reports whether to continue waiting after a poll failed. It returns true for errors which say that Ironic is overloaded
// or unreachable, and nothing about the object. Giving up a deployment for such an error would mean undeploying it.
func MayPass(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return !IsForbidden(err) && (status.Status >= http.StatusInternalServerError || IsTransient(err))
	}
	var op *net.OpError
	var dns *net.DNSError
	return IsTransient(err) || errors.As(err, &op) || errors.As(err, &dns)
}

// wrap turns gophercloud's error for a refused request into a StatusError without secrets, and its error for a token that could
// not be renewed into an AuthError. ctx is that of the request: the renewal may be another's.
func (c *Client) wrap(ctx context.Context, err error) error {
	var reauth *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &reauth) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.authError(reauth.ErrReauth)
	}
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		return c.statusError(code)
	}
	var path *PathError
	if errors.As(err, &path) {
		return path
	}
	var redirect *rest.RedirectError
	if errors.As(err, &redirect) {
		redirect.Root, redirect.Setting = "/v1", "endpoint (METAL_ENDPOINT)"
		return redirect
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the answer is not JSON (%w)", err)
	}
	return err
}

// statusError keeps only the first line of an answer, because schema errors append whole documents.
func (c *Client) statusError(code gophercloud.ErrUnexpectedResponseCode) *StatusError {
	return &StatusError{
		Method: code.Method, URL: c.cfg.Secrets.Redact(code.URL), Status: code.Actual,
		Message: FirstLine(c.cfg.Secrets.Redact(faultText(code.Body))), RequestID: code.ResponseHeader.Get("Openstack-Request-Id"),
		Project: c.Project(), Foreign: !isFromIronic(code.Body),
	}
}

// isFromIronic reports whether the body of an error is from Ironic (reference/ironic.md#error-bodies).
func isFromIronic(body []byte) bool {
	var outer struct {
		ErrorMessage jsonRaw `json:"error_message"`
	}
	return json.Unmarshal(body, &outer) == nil && len(outer.ErrorMessage) > 0
}

// faultText extracts Ironic's message from an error body: a string that contains JSON, an object, or plain text
// (reference/ironic.md#error-bodies).
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

// htmlTitle replaces a web page, which a proxy has sent, by its title.
func htmlTitle(text string) string {
	_, after, found := strings.Cut(text, "<title>")
	title, _, closed := strings.Cut(after, "</title>")
	if found && closed {
		return "a web page, not the API: " + strings.TrimSpace(title)
	}
	if strings.Contains(strings.ToLower(text), "<html") {
		return "a web page, not the API"
	}
	return text
}

// FirstLine returns the first line of a text without surrounding white space.
func FirstLine(text string) string {
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
