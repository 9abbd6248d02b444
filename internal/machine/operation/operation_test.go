package operation_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/operation"
)

func TestOperation_allocatesNothingWithoutTrace(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	ctx := t.Context()
	n := &ironic.Node{Name: "node-000"}
	if allocations := testing.AllocsPerRun(100, func() {
		below, traced := operation.Begin(ctx, "deploy", n, nil)
		traced.See(n)
		_, span := tracing.Start(traced.Within(below), "verb active")
		tracing.End(span, nil)
		traced.End(nil)
	}); allocations != 0 {
		t.Errorf("an operation without a trace makes %v allocations", allocations)
	}
}

func BenchmarkOperation_withoutTrace(b *testing.B) {
	ctx, n := b.Context(), &ironic.Node{Name: "node-000"}
	b.ReportAllocs()
	for b.Loop() {
		below, traced := operation.Begin(ctx, "deploy", n, nil)
		traced.See(n)
		_, span := tracing.Start(traced.Within(below), "verb active")
		tracing.End(span, nil)
		traced.End(nil)
	}
}
