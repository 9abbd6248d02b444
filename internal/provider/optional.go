package provider

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// The interfaces that tf6server finds by type assertion.
var (
	_ tfprotov6.ProviderServerWithListResource = (*Server)(nil) //nolint:staticcheck // until they are part of tfprotov6.ProviderServer
	_ tfprotov6.ProviderServerWithActions      = (*Server)(nil) //nolint:staticcheck // likewise
)

func (s *Server) ValidateListResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateListResourceConfigRequest,
) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ValidateListResourceConfig, failed)
}

// ListResource calls the framework's method under guard until the stream ends.
func (s *Server) ListResource(ctx context.Context, req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	results, err := guardStream(ctx, s, req,
		func(ctx context.Context, req *tfprotov6.ListResourceRequest) (iter.Seq[tfprotov6.ListResourceResult], error) {
			stream, err := s.ProviderServer.ListResource(ctx, req)
			if stream == nil {
				return nil, err
			}
			return stream.Results, err
		}, func(d *tfprotov6.Diagnostic) tfprotov6.ListResourceResult {
			return tfprotov6.ListResourceResult{Diagnostics: []*tfprotov6.Diagnostic{d}}
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ListResourceServerStream{Results: results}, nil
}

func (s *Server) ValidateActionConfig(ctx context.Context,
	req *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	resp, err := guard(ctx, s, req, s.ProviderServer.ValidateActionConfig, failed)
	if schema := knownSchemas().ActionSchemas[req.ActionType]; resp != nil && schema != nil {
		warnEmpty(&resp.Diagnostics, schema.Schema, req.Config)
	}
	return resp, err
}

func (s *Server) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.PlanAction, failed)
}

// InvokeAction calls the framework's method under guard until the stream ends. The framework (1.19) runs the action in its own
// goroutine, so an action must recover its panics itself.
func (s *Server) InvokeAction(ctx context.Context, req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	events, err := guardStream(ctx, s, req,
		func(ctx context.Context, req *tfprotov6.InvokeActionRequest) (iter.Seq[tfprotov6.InvokeActionEvent], error) {
			stream, err := s.ProviderServer.InvokeAction(ctx, req)
			if stream == nil {
				return nil, err
			}
			return stream.Events, err
		}, func(d *tfprotov6.Diagnostic) tfprotov6.InvokeActionEvent {
			return tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{Diagnostics: []*tfprotov6.Diagnostic{d}}}
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.InvokeActionServerStream{Events: events}, nil
}
