package api

import (
	"net/http"
	"testing"
)

func TestRefusalBy_texts(t *testing.T) {
	t.Parallel()
	const scope = `"baremetal:chassis:create": "role:admin and system_scope:all" requires a scope of ['system'], request was made with project scope.`
	for _, tt := range []struct {
		status int
		text   string
		want   *Refusal
	}{
		{
			403, "Access was denied to the following resource: baremetal:node:update:instance_uuid",
			&Refusal{Rule: "baremetal:node:update:instance_uuid"},
		},
		{500, scope, &Refusal{Rule: "baremetal:chassis:create", Scope: "system"}},
		{403, scope, &Refusal{Rule: "baremetal:chassis:create", Scope: "system"}}, // if a later Ironic answers as it means it
		{
			500,
			`"baremetal:driver:get": "(role:reader and system_scope:all) or rule:service_role" requires a scope of ['system', 'domain'], request was made with project scope.`, &Refusal{Rule: "baremetal:driver:get", Scope: "system, domain"},
		},
		{403, "baremetal:node:get is disallowed by policy", &Refusal{Rule: "baremetal:node:get"}},
		{403, "Forbidden", &Refusal{}},
		{403, "Node U is protected and cannot be undeployed, rebuilt or deleted", nil},
		{500, "Unexpected error raised by RPC", nil},
		{404, "Node U could not be found.", nil},
		{401, "The request you have made requires authentication.", nil},
	} {
		err := New(Config{}).Wrap(t.Context(), refused(tt.status, tt.text))
		got := RefusalBy(err)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%d %s: %+v, want %+v", tt.status, tt.text, got, tt.want)
		}
		if IsForbidden(err) && (IsTransient(err) || MayPass(err) || IsUnanswered(err) || IsNotFound(err) ||
			retryable(http.MethodGet, "http://ironic.test/v1/nodes/U", "", err)) {
			t.Errorf("%d %s would be asked again", tt.status, tt.text)
		}
	}
}
