package simulate_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// The states of machines that run something and of free ones. Where a conductor works, it has died.
var (
	inUseStates = []string{
		"rescue", "rescue failed", "unrescue failed", "service failed", "service hold", "deploy failed", "deploy hold", "error",
		"adopt failed", "deploying", "wait call-back", "rescuing", "rescue wait", "unrescuing", "servicing", "service wait", "deleting",
		"adopting",
	}
	freeStates = []string{
		"inspect failed", "clean failed", "clean hold", "cleaning", "clean wait", "inspecting", "inspect wait", "verifying", "enroll",
	}
)

// operations are the commands of the program metal that an operator may run in a state.
var operations = map[string][]string{
	"active": {"rescue --password-file -"}, "rescue": {"unrescue"}, "rescue failed": {"unrescue"}, "unrescue failed": {"unrescue"},
	"clean hold": {"unhold", "abort"}, "deploy hold": {"unhold", "abort"}, "service hold": {"unhold", "abort"},
	"clean wait": {"abort"}, "inspect wait": {"abort"}, "rescue wait": {"abort"}, "service wait": {"abort"},
}

// visit brings a machine of the rack to states that come in turn, applies the rack in each, and lets an operator end the state.
func (r *rack) visit(t *testing.T, s *site, w *workspace, seed uint64) {
	t.Helper()
	const each = 4 // states a rack
	all := append(append([]string{}, inUseStates...), freeStates...)
	for turn := each * seed; turn < each*(seed+1); turn++ {
		at := int(turn % uint64(len(all))) //nolint:gosec // below their number
		for _, n := range s.fake.Nodes() {
			if inUse(n) != (at < len(inUseStates)) {
				continue
			}
			s.bring(n, all[at])
			r.apply(t, s, w)
			r.operate(t, s, w, n)
			break
		}
	}
}

// operate lets an operator do one of the operations of the state of a node.
func (r *rack) operate(t *testing.T, s *site, w *workspace, n fakeironic.Node) {
	t.Helper()
	now, _ := s.fake.Node(n.UUID)
	if of := operations[now.ProvisionState]; of != nil {
		w.do(t, command(append(strings.Fields(of[s.below(len(of))]), "--yes", "--yes-erase", n.UUID, n.UUID)...))
	}
}

// stuck reports whether a conductor works in a state. One that has died leaves the node there.
func stuck(state string) bool { return resumed[state] != "" || strings.HasSuffix(state, " wait") }

// bring lets another client bring a node to a state.
func (s *site) bring(n fakeironic.Node, state string) {
	s.fake.Set(n.UUID, "provision_state", state)
	if target := "active"; stuck(state) {
		if n.InstanceUUID == "" {
			target = "available"
		}
		s.fake.Set(n.UUID, "target_provision_state", target)
	}
	s.tell("another client brings %s to %s", n.Name, state)
}
