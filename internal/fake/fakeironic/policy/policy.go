// Package policy is Ironic's policy: which role may do what.
package policy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Policy selects the rules that a Server with Keystone enforces (oslo.policy's enforce_scope and enforce_new_defaults).
type Policy string

// The policies.
const (
	Default Policy = ""       // both are true
	Legacy  Policy = "legacy" // both are false
)

// rank is how much a role may do: each role may do what the ones before it may do. Zero in a rule is no role.
type rank int

const (
	_ rank = iota
	asReader
	asMember
	asManager
	asAdmin
)

var ranks = map[string]rank{"reader": asReader, "member": asMember, "manager": asManager, "admin": asAdmin}

// rankOf returns the highest rank of a user.
func rankOf(who *api.Caller) (highest rank) {
	for _, role := range who.Roles {
		highest = max(highest, ranks[role])
	}
	return highest
}

// IsAdmin reports whether a user has the role admin.
func IsAdmin(who *api.Caller) bool { return rankOf(who) >= asAdmin }

// Target are the projects to which the object of a request belongs.
type Target struct{ Owner, Lessee string }

// Grants reports whether a rule lets the user of a request do something with an object.
func (p Policy) Grants(c *api.Call, name string, t Target) bool {
	who := c.Caller
	if who == nil {
		return true
	}
	r, has := rights[name], rankOf(who)
	atLeast := func(least rank) bool { return least > 0 && has >= least }
	legacy := p == Legacy
	switch {
	case who.System && atLeast(r.system), atLeast(r.any),
		who.Project != "" && (who.Project == t.Owner && atLeast(r.owner) || who.Project == t.Lessee && atLeast(r.lessee)):
		return true
	case legacy && r.formerly != "":
		return p.Grants(c, r.formerly, t)
	}
	return legacy && !r.recent && has == asAdmin
}

// Enforce returns Ironic's error for a request that a rule does not grant.
func (p Policy) Enforce(c *api.Call, name string, t Target) error {
	if c.Caller == nil {
		return nil
	}
	if r := rights[name]; r.isSystemOnly(c.Legacy()) && !c.Caller.System && p == Default {
		return api.Fault(http.StatusInternalServerError,
			`"baremetal:%s": "%s" requires a scope of ['system'], request was made with project scope.`,
			name, systemChecks[r.system])
	}
	if !p.Grants(c, name, t) {
		return api.Fault(http.StatusForbidden, "Access was denied to the following resource: baremetal:%s", name)
	}
	return nil
}

// PatchRight returns the name of the rule for an operation of a patch; "" if its field has no rule of its own, so that node:update decides.
// legacy means Ironic 21.4.
func PatchRight(op api.PatchOp, legacy bool) string {
	for _, r := range patchRules {
		if strings.HasPrefix(op.Path, r.path) && (!r.recent || !legacy) {
			return r.name
		}
	}
	kind, isInterface := strings.CutSuffix(strings.TrimPrefix(op.Path, "/"), "_interface")
	if isInterface && slices.Contains(api.InterfaceKinds, kind) {
		return "node:update:driver_interfaces"
	}
	if off, isBool := api.ParseBool(op.Value); strings.HasPrefix(op.Path, "/automated_clean") && isBool && !off {
		return "node:disable_cleaning"
	}
	return ""
}

// Hidden returns the fields of a node that the policy hides from the user of a request, joined by commas. 21.4 knows owner and lessee only
// if the request asks for them; fields are those that it asks for, nil means all.
func (p Policy) Hidden(c *api.Call, t Target, fields []string) string {
	if c.Caller == nil || p.Grants(c, "node:get:filter_threshold", Target{}) {
		return ""
	}
	if c.Legacy() && fields != nil {
		if !slices.Contains(fields, "owner") {
			t.Owner = ""
		}
		if !slices.Contains(fields, "lessee") {
			t.Lessee = ""
		}
	}
	var names []string
	for _, field := range []string{"last_error", "reservation", "driver_internal_info", "driver_info"} {
		if !p.Grants(c, "node:get:"+field, t) {
			names = append(names, field)
		}
	}
	return strings.Join(names, ",")
}

// Redaction is what Ironic answers in place of a hidden field.
func Redaction(field string) any {
	switch field {
	case "last_error":
		return "** Value Redacted - Requires baremetal:node:get:last_error permission. **"
	case "driver_internal_info":
		return map[string]any{"content": "** Redacted - Requires baremetal:node:get:driver_internal_info permission. **"}
	case "driver_info":
		return map[string]any{"content": "** Redacted - requires baremetal:node:get:driver_info permission. **"}
	}
	return "** Redacted - requires baremetal:node:get:" + field + " permission. **"
}
