package ironic

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
)

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

// RefusalBy returns what the refusal of a request by Ironic's policy tells; nil for any other error. Such a request is refused again, however
// often it is sent.
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

// IsForbidden reports whether the user lacks the right to a request, whatever the status of the answer is. It does not report nodes that the user
// may not see: for Ironic they do not exist.
func IsForbidden(err error) bool { return RefusalBy(err) != nil }

// protectedText tells the refusal of a request about a protected node, which has the status of a refusal by the policy.
const protectedText = "is protected and cannot be"
