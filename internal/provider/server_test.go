package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// clumsy panics in every RPC, and keeps the contexts that it is given, as the framework does.
type clumsy struct {
	ProviderServer

	kept []context.Context
}

func (c *clumsy) stumble(ctx context.Context) {
	c.kept = append(c.kept, ctx)
	panic("index out of range")
}

func (c *clumsy) ReadResource(ctx context.Context, _ *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) PlanResourceChange(ctx context.Context,
	_ *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) ApplyResourceChange(ctx context.Context,
	_ *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) ValidateResourceConfig(ctx context.Context,
	_ *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) UpgradeResourceState(ctx context.Context,
	_ *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) UpgradeResourceIdentity(ctx context.Context,
	_ *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) ImportResourceState(ctx context.Context,
	_ *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) GenerateResourceConfig(ctx context.Context,
	_ *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) MoveResourceState(ctx context.Context,
	_ *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) ReadDataSource(ctx context.Context, _ *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

func (c *clumsy) ValidateDataResourceConfig(ctx context.Context,
	_ *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	c.stumble(ctx)
	return nil, nil //nolint:nilnil // never gets here
}

// Without guard, a panic in one RPC would end the provider and the operations of all other resources.
func TestServer_panicBecomesDiagnostic(t *testing.T) {
	t.Parallel()
	s := &Server{ProviderServer: &clumsy{}}
	ctx := t.Context()
	for name, call := range map[string]func() ([]*tfprotov6.Diagnostic, error){
		"PlanResourceChange": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{})
			return resp.Diagnostics, err
		},
		"ValidateResourceConfig": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{})
			return resp.Diagnostics, err
		},
		"UpgradeResourceState": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{})
			return resp.Diagnostics, err
		},
		"UpgradeResourceIdentity": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.UpgradeResourceIdentity(ctx, &tfprotov6.UpgradeResourceIdentityRequest{})
			return resp.Diagnostics, err
		},
		"ImportResourceState": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{})
			return resp.Diagnostics, err
		},
		"GenerateResourceConfig": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.GenerateResourceConfig(ctx, &tfprotov6.GenerateResourceConfigRequest{})
			return resp.Diagnostics, err
		},
		"MoveResourceState": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.MoveResourceState(ctx, &tfprotov6.MoveResourceStateRequest{})
			return resp.Diagnostics, err
		},
		"ReadDataSource": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.ReadDataSource(ctx, &tfprotov6.ReadDataSourceRequest{})
			return resp.Diagnostics, err
		},
		"ValidateDataResourceConfig": func() ([]*tfprotov6.Diagnostic, error) {
			resp, err := s.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{})
			return resp.Diagnostics, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diagnostics, err := call()
			wantBug(t, diagnostics, err)
		})
	}
}

// A panic keeps the state that was set before it, because the object still exists in Ironic.
func TestServer_panicKeepsState(t *testing.T) {
	t.Parallel()
	s := &Server{ProviderServer: &clumsy{}}
	state, private := &tfprotov6.DynamicValue{JSON: []byte(`{"id":"1"}`)}, []byte(`{"a":"b"}`)

	read, err := s.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{CurrentState: state, Private: private})
	wantBug(t, read.Diagnostics, err)
	if read.NewState != state || string(read.Private) != string(private) {
		t.Errorf("after a panic in a read the state is %v, private %s", read.NewState, read.Private)
	}
	applied, err := s.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{PriorState: state, PlannedPrivate: private})
	wantBug(t, applied.Diagnostics, err)
	if applied.NewState != state || string(applied.Private) != string(private) {
		t.Errorf("after a panic in an apply the state is %v, private %s", applied.NewState, applied.Private)
	}
}

func wantBug(t *testing.T, diagnostics []*tfprotov6.Diagnostic, err error) {
	t.Helper()
	if err != nil || len(diagnostics) != 1 || diagnostics[0].Severity != tfprotov6.DiagnosticSeverityError {
		t.Fatalf("a panic became %v and error %v, want one error diagnostic", diagnostics, err)
	}
	if text := diagnostics[0].Detail; !strings.Contains(text, "The provider panicked: index out of range") ||
		!strings.Contains(text, "Please report this") {
		t.Errorf("detail %q does not tell of the panic and what to do", text)
	}
}

type key struct{}

// calm answers, and keeps the contexts that it is given.
type calm struct{ clumsy }

func (c *calm) ReadResource(ctx context.Context, _ *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	c.kept = append(c.kept, ctx)
	if ctx.Value(key{}) == nil || ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &tfprotov6.ReadResourceResponse{}, nil
}

// The framework keeps every context until the process ends, so the server must release the values of the context when the RPC ends.
func TestServer_contextIsReleased(t *testing.T) {
	t.Parallel()
	inner := &calm{}
	s := &Server{ProviderServer: inner}
	ctx := context.WithValue(t.Context(), key{}, "what hangs on it")
	if resp, err := s.ReadResource(ctx, &tfprotov6.ReadResourceRequest{}); resp == nil || err != nil {
		t.Fatalf("during the RPC its context did not work: %v", err)
	}
	kept := inner.kept[0]
	if kept.Value(key{}) != nil {
		t.Error("the context still holds on to what hangs on it")
	}
	if kept.Err() == nil {
		t.Error("the context of an RPC that has ended is not over")
	}
	if _, limited := kept.Deadline(); limited {
		t.Error("the context has a deadline from nowhere")
	}
	select {
	case <-kept.Done():
	default:
		t.Error("the context of an RPC that has ended is not done")
	}
}

// Ctrl-C ends the contexts of the RPCs in flight, through the wrapping.
func TestServer_contextEndsWithRPC(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := &lease{rpc: ctx}
	derived, stop := context.WithCancel(l) // as the framework does
	defer stop()
	cancel()
	<-derived.Done()
	if derived.Err() != context.Canceled { //nolint:errorlint // that very value
		t.Errorf("err = %v, want %v", derived.Err(), context.Canceled)
	}
}

// curious asks in a Read, and keeps the context, as the framework does.
type curious struct {
	ProviderServer

	kept context.Context //nolint:containedctx // the framework keeps it, too
}

func (c *curious) ReadResource(ctx context.Context, _ *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	c.kept = ctx
	_, err := framework.Once(ctx, func() (string, error) { return "a node", nil })
	return &tfprotov6.ReadResourceResponse{}, err
}

func TestNodeOfARefreshIsReleased(t *testing.T) {
	t.Parallel()
	inner := &curious{}
	if _, err := (&Server{ProviderServer: inner}).ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{}); err != nil {
		t.Fatal(err)
	}
	answer, err := framework.Once(inner.kept, func() (string, error) { return "asked again", nil })
	if err != nil || answer != "asked again" {
		t.Errorf("the context of a refresh that has ended still holds %q: %v", answer, err)
	}
}
