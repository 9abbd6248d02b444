package deployment

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

// private is what private state keeps of a deployment: see framework.KeepPrivate.
type private struct {
	Past deploy.History `json:"past,omitzero"`
	// Names are those that the node had since it was deployed, besides the present one. The plan that renames a node cannot tell that
	// its new name is going to reach a config drive: an allocation shows it after the apply.
	Names []string         `json:"former_names,omitempty"`
	Sight deploy.Sight     `json:"sight,omitzero"`
	Runs  deploy.Footprint `json:"runs,omitzero"` // the node as of the recorded deployment
	// Last is what an apply has wanted last. One that was interrupted while the image settled goes on with its time.
	Last deploy.Wanted `json:"last,omitzero"`
	// Replaces is of the plan of a new deployment, for the destruction of the one that it replaces.
	Replaces replacement `json:"replaces,omitzero"`
	Updated  time.Time   `json:"updated,omitzero"` // see lost.Seen
	// Restart is what was noted on the node as of the recorded deployment.
	Restart deploy.Restarted `json:"restart,omitzero"`
	Unbegun bool             `json:"unbegun,omitzero"` // the creation was interrupted before Ironic was seen at work on the deployment
	// Superseded is of the plan of a destruction that this run makes after a creation has taken the deployment over.
	Superseded bool `json:"superseded,omitzero"`
}

// see notes the sight of a node, and its former names. deployed reports whether the machine was just deployed, under its present name.
func (p *private) see(node *ironic.Node, deployed bool) {
	p.Names = deploy.FormerNames(p.Names, p.Sight.Name, node.Name)
	if deployed {
		p.Names = nil
	}
	p.Sight = deploy.SightOf(node)
}

func (p *private) begun(node *ironic.Node) {
	p.Unbegun = p.Unbegun && !deploy.Begun(ironic.State(node.ProvisionState))
}

// created notes how a creation has ended: with the footprint of the machine, or before Ironic had begun.
func (p *private) created(node *ironic.Node, runs deploy.Footprint, failed error) {
	p.Sight, p.Updated = deploy.SightOf(node), lost.Seen(p.Updated, node)
	switch {
	case failed == nil: // the node was just read
		p.Runs, p.Restart = runs, deploy.NotedRestart(node)
		return
	case failure.IsInterrupted(failed) && !deploy.Begun(ironic.State(node.ProvisionState)):
		p.Unbegun = true
	}
	p.Sight.Switched = "" // polls do not show it; the next refresh does
}

func (p *private) noteFootprint(ctx context.Context, m *machine.Machine, change deploy.FootprintChange) {
	switch change {
	case deploy.FootprintStays:
	case deploy.FootprintAsked:
		if p.Runs = footprint(ctx, m); p.Runs != (deploy.Footprint{}) { // it has read the node
			p.Sight.Switched = deploy.SightOf(m.Node()).Switched
		}
	case deploy.FootprintKnown:
		p.Runs = deploy.FootprintOf(m.Node())
	case deploy.FootprintAbsent:
		p.Runs = deploy.Footprint{}
	}
}

// footprint reads the footprint of a machine that was just deployed, because polls do not return its image. It is zero if the node
// cannot be read; the next refresh writes it then.
func footprint(ctx context.Context, machine *machine.Machine) deploy.Footprint {
	if machine.Refresh(ctx) != nil {
		return deploy.Footprint{}
	}
	return deploy.FootprintOf(machine.Node())
}
