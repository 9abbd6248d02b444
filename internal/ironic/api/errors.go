package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// StatusError is an answer by which Ironic refuses a request.
type StatusError struct {
	Method, URL string
	Status      int
	Message     string // Ironic's message, without secrets
	RequestID   string // identifies the request in Ironic's log
	Project     string // ID of the project of the user; empty without one

	Ours    bool // no answer has the message: it says what a list of Ironic lacks
	Foreign bool // the message is not from Ironic but from a server in front of it, such as a proxy

	Page  bool   // no service of OpenStack has written the answer, but a proxy, a gateway or a web server
	Proxy string // through which the environment sends the request; "": none
	Size  int64  // of the request's body
}

// Error returns Ironic's message with the status. What is not from a service names the request.
func (e *StatusError) Error() string {
	switch {
	case e.Ours:
		return e.Message
	case e.Message == "", e.Page:
		return fmt.Sprintf("%s %s%s: %s", e.Method, e.URL, through(e.Proxy), e.said())
	}
	return e.said()
}

func (e *StatusError) said() string {
	status := fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	if e.Message == "" {
		return status
	}
	return fmt.Sprintf("%s (%s)", strings.TrimSuffix(e.Message, "."), status)
}

// through names a proxy behind a URL; "" for none.
func through(proxy string) string {
	if proxy == "" {
		return ""
	}
	return " through the proxy " + proxy
}

// ErrorType returns the status, for traces.
func (e *StatusError) ErrorType() string { return strconv.Itoa(e.Status) }

// KindVersion is the kind of an error which says that a feature needs a newer API version than the one in use. TooOld is in About.
const KindVersion fault.Kind = "version"

// TooOld says which API version a feature needs, and which there are.
type TooOld struct {
	Feature      string
	Needs        Microversion
	Have, Server Microversion // in use; the highest that the server supports
}

// Err returns the error, which names the feature and the versions.
func (o TooOld) Err() error {
	advice := "Upgrade Ironic, or remove the setting."
	if o.Server >= o.Needs {
		advice = fmt.Sprintf("Raise microversion in the provider block to at least %q, or remove it.", o.Needs)
	}
	return &fault.Error{
		Kind: KindVersion, About: o, Advice: advice,
		Fact: fmt.Sprintf("%s needs API %s of Ironic, but %s is in use (the server supports up to %s)", o.Feature, o.Needs,
			o.Have, o.Server),
	}
}

// kindPath is the kind of an error which says that a name cannot be sent as part of a path: servers and proxies take "." and ".." for a
// step in the path, however they are escaped, so that the request would be about another object.
const kindPath fault.Kind = "path"

// IsInterrupted reports whether the user stopped the run (Ctrl-C) before the operation was finished.
func IsInterrupted(err error) bool { return errors.Is(err, context.Canceled) }

// IsStatus reports whether Ironic answered with a status and a message that contains text.
func IsStatus(err error, code int, text string) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == code && strings.Contains(status.Message, text)
}

// IsDenied reports whether Ironic or Keystone does not accept the credentials, or the policy does not allow the request. Ironic also hides
// objects from users without rights: see IsNotFound.
func IsDenied(err error) bool {
	return IsStatus(err, http.StatusUnauthorized, "") || IsForbidden(err)
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
		return IsConnectionLoss(err) || isUnsent(err) || errors.Is(err, ErrShifted) || errors.Is(err, ErrIncomplete)
	}
	switch status.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusInternalServerError:
		return isConductorDown(status.Message) || IsCapacity(status.Message)
	case http.StatusConflict:
		return IsLocked(err)
	case http.StatusNotFound:
		return groupGone.MatchString(status.Message)
	}
	return false
}

// groupGone is what Ironic says of a port, or of a list of ports, if the port group of one is deleted while it answers. It names the group
// by its number in the database, which no request can ask for.
var groupGone = regexp.MustCompile(`^Portgroup \d+ could not be found`)

// MayPass reports whether to continue waiting after a poll failed. It returns true for errors which say that Ironic is overloaded
// or unreachable, and nothing about the object. Giving up a deployment for such an error would mean undeploying it.
func MayPass(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return !IsForbidden(err) && (status.Status >= http.StatusInternalServerError || IsTransient(err))
	}
	var op *net.OpError
	var dns *net.DNSError
	return IsTransient(err) || errors.As(err, &op) || errors.As(err, &dns)
}

// IsUnanswered reports whether it is not known what became of a request: no answer arrived, or a server between client and conductor
// has answered in Ironic's place.
func IsUnanswered(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		var silent *SilentError
		return IsConnectionLoss(err) && !isUnsent(err) && !errors.As(err, &silent)
	}
	switch status.Status {
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !IsCapacity(status.Message)
	case http.StatusInternalServerError:
		return isConductorDown(status.Message)
	}
	return false
}

// Texts that distinguish errors with the same status code (reference/ironic.md#errors-worth-a-retry).
func isLocked(text string) bool {
	return strings.Contains(text, "is locked by host") || strings.Contains(text, "while a state transition is in progress")
}

// IsCapacity reports whether Ironic refuses an operation because of its own limit.
func IsCapacity(text string) bool {
	return strings.Contains(text, "concurrent action limit") || strings.Contains(text, "lack of free conductor workers")
}

// IsRamdiskTimeout reports whether last_error says that the ramdisk did not report in time. 21.4 writes "timeout" in one of the texts.
func IsRamdiskTimeout(text string) bool {
	return strings.Contains(text, "imeout reached while")
}

func isConductorDown(text string) bool {
	return strings.Contains(text, "Unable to establish connection to") || strings.Contains(text, "database is locked")
}

// IsUnread reports whether an answer arrived that is empty, cut off, or not what the API writes.
func IsUnread(err error) bool { return fault.Is(err, kindUnread) }

func isTimeout(err error) bool {
	var op net.Error
	return errors.As(err, &op) && op.Timeout()
}

// IsConnectionLoss reports whether no complete answer arrived: the connection was refused or reset, or timed out.
func IsConnectionLoss(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) || isTimeout(err)
}

// isUnsent reports whether there was no connection, so that no server has read the request: its name was not resolved, or it refused.
func isUnsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &op) && op.Op == "dial"
}

// How Ironic's policy refuses a request (reference/ironic.md#policy): as the API does, by the scope of a token, and as oslo.policy does.
var (
	refusedRule  = regexp.MustCompile(`^Access was denied to the following resource: ([\w:]+)`)
	refusedScope = regexp.MustCompile(`^"?([\w:]+)"?: .* requires a scope of \[([^]]*)\], request was made with \w+ scope`)
	disallowed   = regexp.MustCompile(`([\w:]+) is disallowed by policy`)
)

// Refusal is what the refusal of a request by Ironic's policy tells.
type Refusal struct {
	Rule  string // such as "baremetal:node:create"; "" if Ironic does not name it
	Scope string // of the tokens that the rule demands, such as "system"; "" if the scope is not the cause
}

// RefusalBy returns what the refusal of a request by Ironic's policy tells; nil for any other error. Such a request is refused again,
// however often it is sent.
func RefusalBy(err error) *Refusal {
	var status *StatusError
	if !errors.As(err, &status) {
		return nil
	}
	if found := refusedScope.FindStringSubmatch(status.Message); found != nil { // status 500, because Ironic does not expect it
		return &Refusal{Rule: found[1], Scope: strings.ReplaceAll(found[2], "'", "")}
	}
	if status.Status != http.StatusForbidden || strings.Contains(status.Message, protectedText) {
		return nil
	}
	for _, words := range []*regexp.Regexp{refusedRule, disallowed} {
		if found := words.FindStringSubmatch(status.Message); found != nil {
			return &Refusal{Rule: found[1]}
		}
	}
	return &Refusal{}
}

// IsForbidden reports whether the user lacks the right to a request, whatever the status of the answer is. It does not report nodes that
// the user may not see: for Ironic they do not exist.
func IsForbidden(err error) bool { return RefusalBy(err) != nil }

// protectedText tells the refusal of a request about a protected node, which has the status of a refusal by the policy.
const protectedText = "is protected and cannot be"
