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
	_ tfprotov6.ProviderServerWithStateStores  = (*Server)(nil) //nolint:staticcheck // likewise
)

// ValidateListResourceConfig calls the framework's method under guard.
func (s *Server) ValidateListResourceConfig(ctx context.Context,
	req *tfprotov6.ValidateListResourceConfigRequest,
) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ValidateListResourceConfig,
		func(d *tfprotov6.Diagnostic) *tfprotov6.ValidateListResourceConfigResponse {
			return &tfprotov6.ValidateListResourceConfigResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
		})
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

// ValidateActionConfig calls the framework's method under guard.
func (s *Server) ValidateActionConfig(ctx context.Context,
	req *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ValidateActionConfig, func(d *tfprotov6.Diagnostic) *tfprotov6.ValidateActionConfigResponse {
		return &tfprotov6.ValidateActionConfigResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// PlanAction calls the framework's method under guard.
func (s *Server) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.PlanAction, func(d *tfprotov6.Diagnostic) *tfprotov6.PlanActionResponse {
		return &tfprotov6.PlanActionResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
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

// ValidateStateStoreConfig calls the framework's method under guard.
func (s *Server) ValidateStateStoreConfig(ctx context.Context,
	req *tfprotov6.ValidateStateStoreConfigRequest,
) (*tfprotov6.ValidateStateStoreConfigResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ValidateStateStoreConfig,
		func(d *tfprotov6.Diagnostic) *tfprotov6.ValidateStateStoreConfigResponse {
			return &tfprotov6.ValidateStateStoreConfigResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
		})
}

// ConfigureStateStore calls the framework's method under guard.
func (s *Server) ConfigureStateStore(ctx context.Context,
	req *tfprotov6.ConfigureStateStoreRequest,
) (*tfprotov6.ConfigureStateStoreResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.ConfigureStateStore, func(d *tfprotov6.Diagnostic) *tfprotov6.ConfigureStateStoreResponse {
		return &tfprotov6.ConfigureStateStoreResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// ReadStateBytes calls the framework's method under guard until the stream ends.
func (s *Server) ReadStateBytes(ctx context.Context, req *tfprotov6.ReadStateBytesRequest) (*tfprotov6.ReadStateBytesStream, error) {
	chunks, err := guardStream(ctx, s, req,
		func(ctx context.Context, req *tfprotov6.ReadStateBytesRequest) (iter.Seq[tfprotov6.ReadStateByteChunk], error) {
			stream, err := s.ProviderServer.ReadStateBytes(ctx, req)
			if stream == nil {
				return nil, err
			}
			return stream.Chunks, err
		}, func(d *tfprotov6.Diagnostic) tfprotov6.ReadStateByteChunk {
			return tfprotov6.ReadStateByteChunk{Diagnostics: []*tfprotov6.Diagnostic{d}}
		})
	if err != nil {
		return nil, err
	}
	return &tfprotov6.ReadStateBytesStream{Chunks: chunks}, nil
}

// WriteStateBytes calls the framework's method under guard.
func (s *Server) WriteStateBytes(ctx context.Context, req *tfprotov6.WriteStateBytesStream) (*tfprotov6.WriteStateBytesResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.WriteStateBytes, func(d *tfprotov6.Diagnostic) *tfprotov6.WriteStateBytesResponse {
		return &tfprotov6.WriteStateBytesResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// GetStates calls the framework's method under guard.
func (s *Server) GetStates(ctx context.Context, req *tfprotov6.GetStatesRequest) (*tfprotov6.GetStatesResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.GetStates, func(d *tfprotov6.Diagnostic) *tfprotov6.GetStatesResponse {
		return &tfprotov6.GetStatesResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// DeleteState calls the framework's method under guard.
func (s *Server) DeleteState(ctx context.Context, req *tfprotov6.DeleteStateRequest) (*tfprotov6.DeleteStateResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.DeleteState, func(d *tfprotov6.Diagnostic) *tfprotov6.DeleteStateResponse {
		return &tfprotov6.DeleteStateResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// LockState calls the framework's method under guard.
func (s *Server) LockState(ctx context.Context, req *tfprotov6.LockStateRequest) (*tfprotov6.LockStateResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.LockState, func(d *tfprotov6.Diagnostic) *tfprotov6.LockStateResponse {
		return &tfprotov6.LockStateResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}

// UnlockState calls the framework's method under guard.
func (s *Server) UnlockState(ctx context.Context, req *tfprotov6.UnlockStateRequest) (*tfprotov6.UnlockStateResponse, error) {
	return guard(ctx, s, req, s.ProviderServer.UnlockState, func(d *tfprotov6.Diagnostic) *tfprotov6.UnlockStateResponse {
		return &tfprotov6.UnlockStateResponse{Diagnostics: []*tfprotov6.Diagnostic{d}}
	})
}
