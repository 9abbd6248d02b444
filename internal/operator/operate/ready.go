package operate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// Ready says that a machine is available again for its rollout groups: it removes the notes with which runs have left it away. Nothing is
// sent to the machine; other members of the group may change next.
func Ready() Operation {
	return Operation{
		Command: "ready", Instead: "node unset --extra " + notes.KeyTurn + " --extra " + notes.KeyHostTurn, Doing: "end the turn of",
		Timeout: RecordTimeout, Worst: Restarts,
		Decide: func(node *ironic.Node) Plan {
			all := notes.TurnsOf(node)
			if len(all) == 0 {
				return Plan{Nothing: true, Does: "counts as available: no run has left it away"}
			}
			if busy := busyWith(node); busy != "" {
				return Plan{Refused: busy}
			}
			var groups []string
			for _, note := range all {
				groups = append(groups, fmt.Sprintf("%s (run %s)", note.Group, note.Run))
			}
			return Plan{Harm: Restarts, Does: "counts as available in rollout group " + strings.Join(groups, ", ") +
				", so that another member may change"}
		},
		Do: func(ctx context.Context, m *machine.Machine, _ time.Duration) error { return turns.ClearAll(ctx, m) },
	}
}
