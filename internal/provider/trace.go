package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"go.opentelemetry.io/otel/attribute"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
)

// Trace makes the calls of the server part of a run. Call it before the first RPC. Close ends the run.
func (s *Server) Trace(run *tracing.Run) { s.run = run }

// CleanLine returns a text in one line, without the secrets that the server has learned.
func (s *Server) CleanLine(text string) string { return rest.OneLine(s.secrets.Redact(text)) }

// trace begins the span of an RPC that may send requests.
func (s *Server) trace(ctx context.Context, req any) (context.Context, tracing.Call) {
	if s.run == nil {
		return ctx, tracing.Call{}
	}
	var name string
	var about attribute.KeyValue
	changes := false
	switch req := req.(type) {
	case *tfprotov6.ConfigureProviderRequest:
		name, about = "configure provider", tracing.Terraform.String(req.TerraformVersion)
	case *tfprotov6.ReadResourceRequest:
		name, about = on("read", req.TypeName)
	case *tfprotov6.PlanResourceChangeRequest:
		name, about = on("plan", req.TypeName)
	case *tfprotov6.ApplyResourceChangeRequest:
		name, about = on(change(req), req.TypeName)
		changes = true
	case *tfprotov6.ImportResourceStateRequest:
		name, about = on("import", req.TypeName)
	case *tfprotov6.ListResourceRequest:
		name, about = on("list", req.TypeName)
	case *tfprotov6.ReadDataSourceRequest:
		name, about = on("read data", req.TypeName)
	case *tfprotov6.PlanActionRequest:
		name, about = on("plan action", req.ActionType)
	case *tfprotov6.InvokeActionRequest:
		name, about = on("invoke action", req.ActionType)
		changes = true
	default:
		return ctx, tracing.Call{}
	}
	return s.run.Call(ctx, name, changes, about)
}

// on returns the name and the attribute of a span about a type of resources, data sources or actions.
func on(does, what string) (string, attribute.KeyValue) {
	return does + " " + what, tracing.Resource.String(what)
}

func change(req *tfprotov6.ApplyResourceChangeRequest) string {
	switch {
	case isNull(req.PriorState):
		return "create"
	case isNull(req.PlannedState):
		return "delete"
	}
	return "update"
}

// traceErrors gives the span of an RPC the status of its first error. The detail may quote the configuration, so the span has the summary
// only.
func traceErrors(call tracing.Call, diagnostics []*tfprotov6.Diagnostic) {
	if i := slices.IndexFunc(diagnostics, isError); i >= 0 {
		call.Fail(diagnostics[i].Summary)
	}
}

// diagnosticsIn returns the diagnostics of an event of a stream; nil if it has none.
func diagnosticsIn(event any) []*tfprotov6.Diagnostic {
	invoked, is := event.(tfprotov6.InvokeActionEvent)
	if !is {
		return diagnosticsOf(event)
	}
	completed, _ := invoked.Type.(tfprotov6.CompletedInvokeActionEventType) // others have none
	return completed.Diagnostics
}
