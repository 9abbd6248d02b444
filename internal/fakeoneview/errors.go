package fakeoneview

import (
	"fmt"
	"net/http"
)

// Problem is one error as OneView describes it, in the body of an answer or among the taskErrors of a task.
type Problem struct {
	Code    string // errorCode
	Message string
	Details string   // empty means null
	Actions []string // recommendedActions
}

// document returns the JSON of a problem.
func (p Problem) document() map[string]any {
	actions := []any{}
	for _, action := range p.Actions {
		actions = append(actions, action)
	}
	return map[string]any{
		"errorCode": p.Code, "message": p.Message, "details": orNull(p.Details), "recommendedActions": actions,
		"errorSource": nil, "nestedErrors": []any{}, "data": map[string]any{},
	}
}

// apiError is an error answer.
type apiError struct {
	status  int
	problem Problem
}

// Error implements error.
func (e *apiError) Error() string { return e.problem.Message }

func fault(status int, code, format string, args ...any) *apiError {
	return &apiError{status: status, problem: Problem{Code: code, Message: fmt.Sprintf(format, args...)}}
}

func (e *apiError) reply() Reply { return jsonReply(e.status, e.problem.document()) }

// notAuthorized is the answer to a missing, unknown or expired session, and to a session without the permission.
func notAuthorized() *apiError {
	const text = "User not authorized for this operation."
	return &apiError{http.StatusUnauthorized, Problem{
		Code: "AUTHORIZATION", Message: "Authorization error: " + text, Details: text,
		Actions: []string{"Please verify your credentials and re-authenticate before attempting the operation again."},
	}}
}

// loginFailed is the answer to a wrong name or password.
func loginFailed() *apiError {
	return &apiError{http.StatusBadRequest, Problem{
		Code: "AUTHN_AUTH_FAIL", Message: "Invalid username or password or directory.",
		Details: "Authentication failed.", Actions: []string{"Verify the username, password and directory and try again."},
	}}
}

func notFound(what string) *apiError {
	return fault(http.StatusNotFound, "RESOURCE_NOT_FOUND", "The requested resource %s could not be found.", what)
}

func profileNotFound() *apiError {
	return fault(http.StatusNotFound, "ProfileNotFoundException", "The requested profile cannot be retrieved")
}

// staleETag is the answer to an If-Match with an old version. The real code for profiles is not known.
func staleETag() *apiError {
	return fault(http.StatusPreconditionFailed, "CRM_ETAG_CHECK_FAILED",
		"The resource has been modified since it was read: the ETag does not match.")
}

// locked is the answer while another operation is in progress on the resource.
func locked(name string) *apiError {
	return fault(http.StatusConflict, "RESOURCE_LOCKED",
		"The resource %s is locked in a transitory state. Wait until the current operation has ended.", name)
}

func methodNotAllowed(method string) *apiError {
	return fault(http.StatusMethodNotAllowed, "GENERIC_HTTP_405", "The method %s is not allowed for this resource.", method)
}

// badField refuses a field of the body.
func badField(field, format string, args ...any) *apiError {
	return fault(http.StatusBadRequest, "INVALID_ATTRIBUTE", "The attribute %q is not valid: %s", field, fmt.Sprintf(format, args...))
}
