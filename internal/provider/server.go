package provider

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// Address is the provider's address in the registry.
const Address = "registry.terraform.io/terraform-provider-metal/metal"

// ProviderServer is the framework's server. It has more methods than tfprotov6.ProviderServer: tf6server finds those for lists and
// actions by type assertion.
type ProviderServer interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

// Server wraps the framework's server. It turns a panic in an RPC into a diagnostic of that RPC, releases the memory of an RPC
// when it ends, adds the attribute's name to errors in nested values, and answers plans without changes without calling the
// framework. All texts for people leave the provider through it and the log, so it removes secrets from them and makes them printable.
type Server struct {
	ProviderServer
	metal *metal
	run   *tracing.Run // nil: no traces

	secrets rest.Secrets // learned from what Terraform passes; the clients add their own
}

// NewServer returns the provider's server.
func NewServer(version string) *Server { return NewServerOver(version, nil) }

// NewServerOver returns the provider's server, which reaches Ironic, OneView and the servers of images through the given transport instead
// of sockets. Ready checks connect by it if it is a readiness.Dialer. It is for tests in virtual time.
func NewServerOver(version string, transport http.RoundTripper) *Server {
	return serverOf(&metal{version: version, transport: transport})
}

// NewServerIn is NewServerOver in an environment, as from os.Environ, that is not that of the process. It is for tests that run beside each
// other.
func NewServerIn(version string, environ []string, transport http.RoundTripper) *Server {
	return serverOf(&metal{version: version, environ: environ, transport: transport})
}

func serverOf(m *metal) *Server {
	s := &Server{metal: m}
	s.metal.secrets = &s.secrets
	inner, ok := providerserver.NewProtocol6(s.metal)().(ProviderServer)
	if !ok {
		panic("the framework's server lacks calls for lists or actions")
	}
	s.ProviderServer = inner
	return s
}

// closeLimit is the time-out of Close: Terraform kills a provider that does not end within two seconds.
const closeLimit = 1500 * time.Millisecond

// Close ends the trace, and the provider's sessions with OneView, because an appliance allows only a limited number. Call it after the last
// RPC. It ignores errors, because a session expires after a day.
func (s *Server) Close(ctx context.Context) {
	routine.Each(2, 2, func(i int) error { //nolint:errcheck // see above
		[]func(context.Context){s.run.Close, s.logOut}[i](ctx)
		return nil
	})
}

func (s *Server) logOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	s.metal.mu.Lock()
	defer s.metal.mu.Unlock()
	for _, client := range s.metal.appliances {
		_ = client.Close(ctx)
	}
}

func (s *Server) ValidateResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	resp, err := located(guard(ctx, s, req, s.ProviderServer.ValidateResourceConfig, failed))
	if resp != nil {
		warnEmpty(&resp.Diagnostics, knownSchemas().ResourceSchemas[req.TypeName], req.Config)
	}
	return resp, err
}

func (s *Server) UpgradeResourceState(ctx context.Context,
	req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.UpgradeResourceState, failed)
}

func (s *Server) UpgradeResourceIdentity(ctx context.Context,
	req *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.UpgradeResourceIdentity, failed)
}

func (s *Server) ImportResourceState(ctx context.Context,
	req *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ImportResourceState, failed)
}

func (s *Server) GenerateResourceConfig(ctx context.Context,
	req *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.GenerateResourceConfig, failed)
}

func (s *Server) MoveResourceState(ctx context.Context,
	req *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.MoveResourceState, failed)
}

func (s *Server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ReadDataSource, failed)
}

func (s *Server) ValidateDataResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	resp, err := located(guard(ctx, s, req, s.ProviderServer.ValidateDataResourceConfig, failed))
	if resp != nil {
		warnEmpty(&resp.Diagnostics, knownSchemas().DataSourceSchemas[req.TypeName], req.Config)
	}
	return resp, err
}

// ValidateProviderConfig calls the framework's method under guard, and adds the names of nested attributes to errors.
func (s *Server) ValidateProviderConfig(ctx context.Context,
	req *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	resp, err := located(guard(ctx, s, req, s.ProviderServer.ValidateProviderConfig,
		func(d *tfprotov6.Diagnostic) *tfprotov6.ValidateProviderConfigResponse {
			return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config, Diagnostics: []*tfprotov6.Diagnostic{d}}
		}))
	if resp != nil {
		warnEmpty(&resp.Diagnostics, knownSchemas().Provider, req.Config)
	}
	return resp, err
}

func (s *Server) ConfigureProvider(ctx context.Context,
	req *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ConfigureProvider, failed)
}

func (s *Server) GetFunctions(ctx context.Context, req *tfprotov6.GetFunctionsRequest) (*tfprotov6.GetFunctionsResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.GetFunctions, failed)
}

// CallFunction calls the framework's method under guard. The error of a function is a text for people, too.
func (s *Server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	resp, err := guard(ctx, s, req, s.ProviderServer.CallFunction, func(d *tfprotov6.Diagnostic) *tfprotov6.CallFunctionResponse {
		return &tfprotov6.CallFunctionResponse{Error: &tfprotov6.FunctionError{Text: d.Summary + ": " + d.Detail}}
	})
	if resp != nil && resp.Error != nil {
		resp.Error.Text = s.clean(resp.Error.Text)
	}
	return resp, err
}
