package provider

import (
	"context"
	"fmt"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// Address is the provider's address in the registry.
const Address = "registry.terraform.io/terraform-provider-metal/metal"

// Server is the framework's server with a guard round the RPCs that are many: a panic in one becomes a diagnostic of that
// one, and the memory of an RPC is let go when it ends. Errors in values name the attribute.
type Server struct {
	tfprotov6.ProviderServer
	metal *metal
}

// NewServer returns the provider's server.
func NewServer(version string) *Server {
	p := &metal{version: version}
	return &Server{ProviderServer: providerserver.NewProtocol6(p)(), metal: p}
}

// closeLimit is how long Close may take: Terraform kills a provider that does not end within two seconds.
const closeLimit = 1500 * time.Millisecond

// Close ends what the provider holds elsewhere: its session with OneView, of which an appliance allows only so many. It is
// to be called when nothing is served any more; that it does not work is no harm, the session ends after a day.
func (s *Server) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	s.metal.mu.Lock()
	defer s.metal.mu.Unlock()
	for _, client := range s.metal.appliances {
		_ = client.Close(ctx)
	}
}

// lease is a context that forwards to an RPC's own and lets go of it when the RPC ends. The framework (1.19) keeps every
// context that it is given until the process ends, about 13 KiB each (reference ecosystem.md 9.13).
type lease struct {
	mu  sync.RWMutex
	rpc context.Context //nolint:containedctx // that is what it is for
}

func (l *lease) get() context.Context {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.rpc
}

func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rpc = ended
}

func (l *lease) Deadline() (time.Time, bool) { return l.get().Deadline() }
func (l *lease) Done() <-chan struct{}       { return l.get().Done() }
func (l *lease) Err() error                  { return l.get().Err() }
func (l *lease) Value(key any) any           { return l.get().Value(key) }

// ended is a context that is over, and holds nothing.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it stands in for a caller that is gone
	cancel()
	return ctx
}()

// guard runs one RPC. failed makes its answer from the diagnostic of a panic.
func guard[Req, Resp any](ctx context.Context, req Req, call func(context.Context, Req) (Resp, error), failed func(*tfprotov6.Diagnostic) Resp) (resp Resp, err error) {
	l := &lease{rpc: ctx}
	defer l.end()
	defer func() {
		if r := recover(); r != nil {
			tflog.Error(ctx, "panic in the provider", map[string]any{"panic": fmt.Sprint(r), "stack": string(debug.Stack())})
			resp, err = failed(&tfprotov6.Diagnostic{
				Severity: tfprotov6.DiagnosticSeverityError,
				Summary:  "The provider has a bug",
				Detail: fmt.Sprintf("It panicked: %v. Other resources are not affected. Please report this with the stack trace from the log (TF_LOG=ERROR).",
					r),
			}), nil
		}
	}()
	return call(l, req)
}

// ReadResource guards the framework's.
func (s *Server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return guard(ctx, req, s.ProviderServer.ReadResource, func(d *tfprotov6.Diagnostic) *tfprotov6.ReadResourceResponse {
		return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private, Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// PlanResourceChange guards the framework's.
func (s *Server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return guard(ctx, req, s.ProviderServer.PlanResourceChange, func(d *tfprotov6.Diagnostic) *tfprotov6.PlanResourceChangeResponse {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: req.ProposedNewState, PlannedPrivate: req.PriorPrivate, Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// ApplyResourceChange guards the framework's. The resources themselves recover once they have set state, so that what
// they have made is not lost.
func (s *Server) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return guard(ctx, req, s.ProviderServer.ApplyResourceChange, func(d *tfprotov6.Diagnostic) *tfprotov6.ApplyResourceChangeResponse {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate, Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// ValidateResourceConfig guards the framework's.
func (s *Server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	resp, err := guard(ctx, req, s.ProviderServer.ValidateResourceConfig, func(d *tfprotov6.Diagnostic) *tfprotov6.ValidateResourceConfigResponse {
		return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
	if resp != nil {
		locate(resp.Diagnostics)
	}
	return resp, err
}

// UpgradeResourceState guards the framework's.
func (s *Server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return guard(ctx, req, s.ProviderServer.UpgradeResourceState, func(d *tfprotov6.Diagnostic) *tfprotov6.UpgradeResourceStateResponse {
		return &tfprotov6.UpgradeResourceStateResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// UpgradeResourceIdentity guards the framework's.
func (s *Server) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return guard(ctx, req, s.ProviderServer.UpgradeResourceIdentity, func(d *tfprotov6.Diagnostic) *tfprotov6.UpgradeResourceIdentityResponse {
		return &tfprotov6.UpgradeResourceIdentityResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// ImportResourceState guards the framework's.
func (s *Server) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return guard(ctx, req, s.ProviderServer.ImportResourceState, func(d *tfprotov6.Diagnostic) *tfprotov6.ImportResourceStateResponse {
		return &tfprotov6.ImportResourceStateResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// ReadDataSource guards the framework's.
func (s *Server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return guard(ctx, req, s.ProviderServer.ReadDataSource, func(d *tfprotov6.Diagnostic) *tfprotov6.ReadDataSourceResponse {
		return &tfprotov6.ReadDataSourceResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// ValidateDataResourceConfig guards the framework's.
func (s *Server) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	resp, err := guard(ctx, req, s.ProviderServer.ValidateDataResourceConfig, func(d *tfprotov6.Diagnostic) *tfprotov6.ValidateDataResourceConfigResponse {
		return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
	if resp != nil {
		locate(resp.Diagnostics)
	}
	return resp, err
}

// ValidateProviderConfig is the framework's, with names of nested attributes.
func (s *Server) ValidateProviderConfig(ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	resp, err := s.ProviderServer.ValidateProviderConfig(ctx, req)
	if resp != nil {
		locate(resp.Diagnostics)
	}
	return resp, err
}

// checkURL returns what is wrong with a URL.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("does not begin with http:// or https://")
	case u.Hostname() == "":
		return fmt.Errorf("names no host")
	case u.User != nil:
		return fmt.Errorf("contains credentials; use username and password")
	}
	return nil
}
