package operate_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// An action refuses what its command refuses, with the same words, and sends nothing.
func TestInvoke_refusesAsTheCommand(t *testing.T) {
	t.Parallel()
	for _, op := range operate.All() {
		if op.Action == "" {
			continue
		}
		t.Run(op.Command, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				refused := 0
				for _, state := range []string{"enroll", "available", "active", "cleaning", "clean wait", "servicing", "rescue"} {
					fake := ironictest.Fleet(1)
					fake.Set("node-000", "provision_state", state)
					site := sitetest.NewClient(fake).Site
					if op.Plan(nodeOf(t, fake), operate.Seen{Now: time.Now()}).Refused == "" {
						continue
					}
					refused++
					command := do(t.Context(), t, site, op, "node-000")
					runner := operate.Runner{Site: site, Tell: func(*ironic.Node, string) {}}
					action := runner.Invoke(t.Context(), op, "node-000")
					if action.Outcome != operate.Refused || command.Err == nil || action.Err.Error() != command.Err.Error() {
						t.Errorf("in state %s: %s: %v, the command: %v", state, action.Outcome, action.Err, command.Err)
					}
					for _, r := range fake.Requests() {
						if r.Method != http.MethodGet {
							t.Errorf("in state %s: %s %s was sent", state, r.Method, r.Path)
						}
					}
				}
				if refused == 0 {
					t.Error("it is refused in no state")
				}
			})
		})
	}
}

// What each operation may do at most, and the commands in whose place it stands, are in the operation.
func TestAll_hasEachCommandOnce(t *testing.T) {
	t.Parallel()
	all := map[string]bool{}
	for _, op := range operate.All() {
		instead := op.Instead != "" || op.Command == "indicator" // which OpenStack's command does not have
		lacks := op.Command == "" || !instead || op.Doing == "" || op.Timeout == 0 || op.Since > 0 && op.Feature == ""
		if all[op.Command] || lacks {
			t.Errorf("%q is twice, or lacks something: %+v", op.Command, op)
		}
		all[op.Command] = true
	}
}
