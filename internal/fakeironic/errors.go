package fakeironic

import (
	"fmt"
	"net/http"
)

// apiError is an answer that says no. Ironic has several shapes for it.
type apiError struct {
	status int
	text   string
	header http.Header

	router bool // made by the router: code, title and description instead of a faultstring
	basic  bool // made by the http_basic middleware
	empty  bool // no body at all
}

// Error implements error.
func (e *apiError) Error() string { return e.text }

// fault is an error of the application, the common case.
func fault(status int, format string, args ...any) *apiError {
	return &apiError{status: status, text: fmt.Sprintf(format, args...)}
}

// routerFault is an error of the router: a path, method or version that does not exist.
func routerFault(status int, format string, args ...any) *apiError {
	return &apiError{status: status, text: fmt.Sprintf(format, args...), router: true}
}

// notAcceptable refuses what the requested API version does not have.
func notAcceptable() *apiError { return fault(http.StatusNotAcceptable, "Request not acceptable.") }

// notAcceptableBefore refuses a parameter, naming the API version that has it.
func notAcceptableBefore(minor int) *apiError {
	return fault(http.StatusNotAcceptable, "Request not acceptable. The minimal required API version should be 1.%d", minor)
}

// unexpectedRPC is the answer when the conductor has a bug there.
func unexpectedRPC() *apiError {
	return fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
}

// methodNotAllowed refuses a method and lists those that exist.
func methodNotAllowed(allowed string) *apiError {
	e := routerFault(http.StatusMethodNotAllowed, "")
	e.header = http.Header{"Allow": {allowed}}
	return e
}

// reply writes the error in its shape.
func (e *apiError) reply() reply {
	header := e.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	switch {
	case e.empty:
		header.Set("Content-Type", "text/plain")
		return reply{status: e.status, header: header}
	case e.basic:
		body := map[string]any{"error": map[string]any{"message": e.text, "code": e.status}}
		return reply{status: e.status, header: header, body: encode(body)}
	case e.router:
		inner := ordered{{"code", e.status}, {"title", http.StatusText(e.status)}, {"description", e.text}}
		return reply{status: e.status, header: header, body: encode(ordered{{"error_message", string(encode(inner))}})}
	}
	code := "Client"
	if e.status >= http.StatusInternalServerError {
		code = "Server"
	}
	inner := ordered{{"faultcode", code}, {"faultstring", e.text}, {"debuginfo", nil}}
	return reply{status: e.status, header: header, body: encode(ordered{{"error_message", string(encode(inner))}})}
}
