package api

import (
	"fmt"
	"net/http"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// Reply is a complete answer.
type Reply = fakehttp.Reply

// OK answers with a JSON body.
func OK(status int, value any) Reply {
	return Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: Encode(value)}
}

// Done answers without a body.
func Done(status int) Reply { return Reply{Status: status, Header: http.Header{}} }

// Created answers 201 with the Location of the new resource.
func (c *Call) Created(path string, value any) Reply {
	answer := OK(http.StatusCreated, value)
	answer.Header.Set("Location", c.Base+"/v1/"+path)
	return answer
}

// Error is an error answer. Ironic has several formats for it.
type Error struct {
	Status int
	Text   string
	Header http.Header

	Router   bool // made by the router: code, title and description instead of a faultstring
	Basic    bool // made by the http_basic middleware
	Keystone bool // made by keystonemiddleware
	Empty    bool // has no body
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Fault returns an error of the application, the common case.
func Fault(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}

// RouterFault returns an error of the router: the path, method or version does not exist.
func RouterFault(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...), Router: true}
}

// NotAcceptable refuses a feature that the requested API version lacks.
func NotAcceptable() *Error { return Fault(http.StatusNotAcceptable, "Request not acceptable.") }

// NotAcceptableBefore refuses a parameter and names the first API version that has it.
func NotAcceptableBefore(minor int) *Error {
	return Fault(http.StatusNotAcceptable, "Request not acceptable. The minimal required API version should be 1.%d", minor)
}

// UnexpectedRPC is the answer where a bug in the conductor raises an exception.
func UnexpectedRPC() *Error {
	return Fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
}

// MethodNotAllowed refuses a method and lists the allowed ones.
func MethodNotAllowed(allowed string) *Error {
	e := RouterFault(http.StatusMethodNotAllowed, "")
	e.Header = http.Header{"Allow": {allowed}}
	return e
}

// Reply encodes the error in its format.
func (e *Error) Reply() Reply {
	header := e.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	switch {
	case e.Empty:
		header.Set("Content-Type", "text/plain")
		return Reply{Status: e.Status, Header: header}
	case e.Keystone:
		body := map[string]any{"error": map[string]any{"code": e.Status, "title": http.StatusText(e.Status), "message": e.Text}}
		return Reply{Status: e.Status, Header: header, Body: Encode(body)}
	case e.Basic:
		body := map[string]any{"error": map[string]any{"message": e.Text, "code": e.Status}}
		return Reply{Status: e.Status, Header: header, Body: Encode(body)}
	case e.Router:
		inner := Ordered{{"code", e.Status}, {"title", http.StatusText(e.Status)}, {"description", e.Text}}
		return Reply{Status: e.Status, Header: header, Body: Encode(Ordered{{"error_message", string(Encode(inner))}})}
	}
	code := "Client"
	if e.Status >= http.StatusInternalServerError {
		code = "Server"
	}
	inner := Ordered{{"faultcode", code}, {"faultstring", e.Text}, {"debuginfo", nil}}
	return Reply{Status: e.Status, Header: header, Body: Encode(Ordered{{"error_message", string(Encode(inner))}})}
}

// NotBool refuses a value that is not a boolean.
func NotBool(key string, value any) error {
	return Fault(http.StatusBadRequest, "Invalid %s: Unrecognized value '%s', acceptable values are: '0', '1', 'f', 'false', 'n', 'no', "+
		"'off', 'on', 't', 'true', 'y', 'yes'", key, PyText(value))
}

// InvalidAction refuses an action in the current state of a node.
func InvalidAction(action, uuid, current string) error {
	return Fault(http.StatusBadRequest, "The requested action \"%s\" can not be performed on node \"%s\" while it is in state \"%s\".",
		action, uuid, current)
}
