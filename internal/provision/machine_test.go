package provision_test

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// site is a Site whose recipes are called by the node's UUID and return the node as last seen: a test tells its story in one line each.
type site struct{ *provision.Site }

// of reads a node and calls a recipe on its machine.
func (s *site) of(ctx context.Context, id string, recipe func(*provision.Machine) error) (*ironic.Node, error) {
	m, err := s.Machine(ctx, id)
	if err != nil {
		return nil, err
	}
	err = recipe(m)
	return m.Node(), err
}

func (s *site) Reach(ctx context.Context, id string, goal provision.Goal, limit time.Duration) (*ironic.Node, error) {
	return s.of(ctx, id, func(m *provision.Machine) error { return m.Reach(ctx, goal, limit) })
}

func (s *site) SetPower(ctx context.Context, id string, on bool, limit time.Duration) (*ironic.Node, error) {
	return s.of(ctx, id, func(m *provision.Machine) error { return m.SetPower(ctx, on, limit) })
}

func (s *site) ReserveNode(ctx context.Context, id, instance string) (*ironic.Node, error) {
	return s.of(ctx, id, func(m *provision.Machine) error { return m.Reserve(ctx, instance) })
}

func (s *site) RecordBoot(ctx context.Context, id string, d provision.Deployment, byHand []string) (*ironic.Node, error) {
	return s.of(ctx, id, func(m *provision.Machine) error { return m.RecordBoot(ctx, d, byHand) })
}

func (s *site) Deploy(ctx context.Context, id string, d provision.Deployment, o provision.DeployOptions) (node *ironic.Node, attempts int, err error) {
	node, err = s.of(ctx, id, func(m *provision.Machine) (err error) { attempts, err = m.Deploy(ctx, d, o); return err })
	return node, attempts, err
}

func (s *site) BootISO(ctx context.Context, id string, d provision.Deployment, o provision.DeployOptions) (node *ironic.Node, attempts int, err error) {
	node, err = s.of(ctx, id, func(m *provision.Machine) (err error) { attempts, err = m.BootISO(ctx, d, o); return err })
	return node, attempts, err
}

// undeployed is what Undeploy leaves: the node, and why its allocation was lost.
type undeployed struct {
	Node *ironic.Node
	Lost string
}

func (s *site) Undeploy(ctx context.Context, id, instance, allocation string, limit time.Duration) (*undeployed, error) {
	done := &undeployed{}
	var err error
	done.Node, err = s.of(ctx, id, func(m *provision.Machine) (err error) {
		done.Lost, err = m.Undeploy(ctx, instance, allocation, limit)
		return err
	})
	if ironic.IsNotFound(err) {
		return done, nil
	}
	return done, err
}

func (s *site) AwaitAllocation(ctx context.Context, spec ironic.AllocationSpec, limit time.Duration) (*ironic.Allocation, error) {
	a, err := s.Allocation(ctx, spec.UUID)
	if err != nil {
		return nil, err
	}
	return s.Site.AwaitAllocation(ctx, provision.Request{AllocationSpec: spec}, a, limit)
}

func (s *site) PatchHost(ctx context.Context, node *ironic.Node, patch ironic.Patch) (*ironic.Node, error) {
	m := s.Record(node)
	arrived, err := m.PatchHost(ctx, patch)
	if !arrived {
		return nil, err
	}
	return m.Node(), err
}

// newSite is provision.New.
func newSite(cfg provision.Config) *site { return &site{provision.New(cfg)} }
