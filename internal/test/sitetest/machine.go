package sitetest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Client is a Site whose recipes are called by the node's UUID and return the node as last seen: a test tells its story in one line each.
type Client struct{ *machine.Site }

// Of reads a node and calls a recipe on its machine.
func (s *Client) Of(ctx context.Context, id string, recipe func(*machine.Machine) error) (*ironic.Node, error) {
	m, err := s.Machine(ctx, id)
	if err != nil {
		return nil, err
	}
	err = recipe(m)
	return m.Node(), err
}

// Reach brings a machine to a goal.
func (s *Client) Reach(ctx context.Context, id string, goal states.Goal, limit time.Duration) (*ironic.Node, error) {
	return s.Of(ctx, id, func(m *machine.Machine) error { return m.Reach(ctx, goal, limit) })
}

// SetPower switches a machine on or off.
func (s *Client) SetPower(ctx context.Context, id string, on bool, limit time.Duration) (*ironic.Node, error) {
	return s.Of(ctx, id, func(m *machine.Machine) error { return m.SetPower(ctx, on, limit) })
}

// ReserveNode reserves a machine for an instance.
func (s *Client) ReserveNode(ctx context.Context, id, instanceID string) (*ironic.Node, error) {
	return s.Of(ctx, id, func(m *machine.Machine) error { return deploy.Reserve(ctx, m, instanceID) })
}

// RecordBoot records the live ISO of a machine.
func (s *Client) RecordBoot(ctx context.Context, id string, d deploy.Deployment, byHand []string) (*ironic.Node, error) {
	return s.Of(ctx, id, func(m *machine.Machine) error { return deploy.RecordBoot(ctx, m, d, byHand) })
}

// Deploy deploys a machine, and returns how often it has tried.
func (s *Client) Deploy(
	ctx context.Context, id string, d deploy.Deployment, o deploy.DeployOptions,
) (node *ironic.Node, attempts int, err error) {
	node, err = s.Of(ctx, id, func(m *machine.Machine) (err error) { attempts, err = deploy.Deploy(ctx, m, d, o); return err })
	return node, attempts, err
}

// BootISO boots a machine from a live ISO.
func (s *Client) BootISO(
	ctx context.Context, id string, d deploy.Deployment, o deploy.DeployOptions,
) (node *ironic.Node, attempts int, err error) {
	node, err = s.Of(ctx, id, func(m *machine.Machine) (err error) { attempts, err = deploy.BootISO(ctx, m, d, o); return err })
	return node, attempts, err
}

// Undeployed is what Undeploy leaves: the node, and why its allocation was lost.
type Undeployed struct {
	Node *ironic.Node
	Lost string
}

// Undeploy undeploys a machine.
func (s *Client) Undeploy(ctx context.Context, id, instance, allocation string, limit time.Duration) (*Undeployed, error) {
	done := &Undeployed{}
	var err error
	done.Node, err = s.Of(ctx, id, func(m *machine.Machine) (err error) {
		done.Lost, err = deploy.Undeploy(ctx, m, instance, allocation, limit)
		return err
	})
	if api.IsNotFound(err) {
		return done, nil
	}
	return done, err
}

// AwaitAllocation waits until an allocation has a node.
func (s *Client) AwaitAllocation(ctx context.Context, spec ironic.AllocationSpec, limit time.Duration) (*ironic.Allocation, error) {
	a, err := s.Ironic.Allocation(ctx, spec.UUID)
	if err != nil {
		return nil, err
	}
	return allocate.AwaitAllocation(ctx, s.Site, allocate.Request{AllocationSpec: spec}, a, limit)
}

// PatchHost edits a machine as metal_host does.
func (s *Client) PatchHost(ctx context.Context, node *ironic.Node, patch ironic.Patch) (*ironic.Node, error) {
	m := s.Record(node)
	arrived, err := m.PatchHost(ctx, patch)
	if !arrived {
		return nil, err
	}
	return m.Node(), err
}

// NewSite is machine.New.
func NewSite(cfg machine.Config) *Client {
	if cfg.Images == nil { // the network does not belong into virtual time
		cfg.Images = ironictest.Transport(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("this site has no server of images")
		})
	}
	return &Client{machine.New(cfg)}
}
