package deployment

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// replacement is what the plan of a new deployment says, for the destruction of the one that it replaces.
type replacement struct {
	Settings rollout.Settings `json:"settings"`
	Content  string           `json:"content"` // "": not known yet
	Asked    string           `json:"asked"`   // the same
	Node     string           `json:"node"`    // as configured; "": not known yet
}

// replacement returns what the destruction of the same plan reads.
func (d *deployment) replacement(ctx context.Context, plan *model, wanted deploy.Deployment) replacement {
	return replacement{
		Settings: d.Turns(ctx, plan.Rollout), Content: wanted.Source(), Asked: wanted.Asked(), Node: plan.NodeID.ValueString(),
	}
}

// turnToReplace waits for the turn of a machine that is undeployed to be replaced; nil if it is only undeployed. next is the node of the
// new deployment, as configured.
func (d *deployment) turnToReplace(
	ctx context.Context, m *machine.Machine, by replacement, limit time.Duration,
) (turn *turns.Turn, next string, err error) {
	if by == (replacement{}) {
		return nil, "", nil
	}
	m.Gets(by.Asked)
	turn, err = turns.TakeToReplace(ctx, m, turns.Change{Settings: by.Settings, Content: by.Content, Limit: limit})
	return turn, by.Node, err
}

// turn waits for the turn of a machine that is deployed for the first time.
func (d *deployment) turn(ctx context.Context, plan *model, m *machine.Machine, wanted deploy.Deployment,
	limit time.Duration,
) (*turns.Turn, error) {
	if plan.adopted() {
		return nil, nil //nolint:nilnil // nothing happens to the machine
	}
	m.Gets(wanted.Asked())
	return turns.Take(ctx, m, turns.Change{
		Settings: d.Turns(ctx, plan.Rollout), Change: rollout.FirstDeployment, Content: wanted.Source(),
		Node: plan.NodeID.ValueString(), Checked: framework.IsSet(plan.ReadyCheck), Limit: limit,
	})
}

// turn waits for the turn of a machine that runs already.
func (u *update) turn(ctx context.Context, m *machine.Machine, settings rollout.Settings) (*turns.Turn, error) {
	change, takes := deploy.Change(u.steps)
	if !takes {
		return nil, nil //nolint:nilnil // it stays as it is
	}
	if change == rollout.Rebuild {
		m.Gets(u.what.Asked())
	}
	return turns.Take(ctx, m, turns.Change{
		Settings: settings, Change: change, Content: u.what.Source(), Away: change == rollout.Check,
		Checked: framework.IsSet(u.plan.ReadyCheck), Limit: u.limit,
	})
}
