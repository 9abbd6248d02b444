package operate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

// Each machine of a command has one span with all of its operation below, and each of these spans names that machine.
func TestTrace_hasASpanForEachMachine(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		fake.StepTime = time.Minute
		client := sitetest.NewClient(fake, sitetest.Slots(1))
		machines, err := client.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		spans, op := tracingtest.NewSpans(), operate.Inspect(nil)
		ctx, end := spans.Under(t.Context(), "metal inspect")
		runner := &operate.Runner{Site: client.Site, Parallel: 2}
		want(t, runner.Run(ctx, op, operate.Tasks(op, machines, operate.Seen{Now: client.Ironic.ServerNow()})), operate.Done)
		end()
		var operations []string
		for _, path := range spans.Paths() {
			above, rest, _ := strings.Cut(path, " > ")
			operation, parts, is := strings.Cut(rest, " > ")
			switch {
			case above != "metal inspect ()":
				t.Errorf("the command names a machine: %s", path)
			case !is && operation != "":
				operations = append(operations, operation)
			case is && strings.Contains(parts, "admissions"):
				if !strings.HasSuffix(parts, "admissions ()") {
					t.Errorf("what is about several machines names one: %s", path)
				}
			case is:
				_, node, _ := strings.Cut(operation, " (")
				if strings.Count(parts, " ("+node) != strings.Count(parts, " > ")+1 {
					t.Errorf("a span about one machine is below a span about another: %s", path)
				}
			}
		}
		if got := strings.Join(operations, ", "); got != "inspect (node-000), inspect (node-001)" {
			t.Errorf("the operations are %s", got)
		}
	})
}

// A command of a machine has one span with its name, and below it what Ironic does.
func TestTrace_ofACommand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op     operate.Operation
		before map[string]any
		want   string
	}{
		"power": {operate.Power(machine.ActionOff), map[string]any{"power_state": "power on"}, `
metal 1s
  power off 1s
    state available 1s
    switch the machine off 0s
`},
		"boot device": {operate.BootDevice("pxe", true), nil, `
metal 0s
  boot-device set 0s
    set the boot device 0s
    state available 0s
`},
		"maintenance": {operate.Maintenance(machine.Maintenance{On: true, Reason: "fan"}), nil, `
metal 0s
  maintenance on 0s
    state available 0s
`},
		"abort": {operate.Abort(), map[string]any{"provision_state": "clean wait"}, `
metal 1s
  abort 1s
    state clean failed 1s
    state clean wait 0s
    verb abort 0s
`},
		"refused": {operate.Unhold(), nil, `
metal 0s
  unhold 0s !refused
    state available 0s
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				for field, value := range tt.before {
					fake.Set("node-000", field, value)
				}
				spans := tracingtest.NewSpans()
				ctx, end := spans.Under(t.Context(), "metal")
				do(ctx, t, sitetest.NewClient(fake).Site, tt.op, "node-000")
				end()
				spans.Want(t, tt.want)
			})
		})
	}
}

// The trace of a service names its steps, also after more polls than a span keeps as events.
func TestTrace_hasServiceSteps(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := deployed(t)
		fake.StepTime = time.Minute
		spans := tracingtest.NewSpans()
		ctx, end := spans.Under(t.Context(), "metal service")
		op := operate.Service(ironic.Order{Steps: []ironic.CleanStep{{Interface: "vendor", Step: "trigger_servicewait"}}})
		site := sitetest.NewClient(fake).Site
		runner := &operate.Runner{Site: site, Parallel: 1, Timeout: 5 * time.Hour} // the step waits in vain
		node, err := site.Ironic.Node(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		runner.Run(ctx, op, operate.Tasks(op, []ironic.Node{*node}, operate.Seen{Now: site.Ironic.ServerNow()}))
		end()
		if texts := spans.Texts(); !slices.Contains(texts, "ironic.step=vendor.trigger_servicewait") {
			t.Errorf("no span has the step:\n%s", strings.Join(texts, "\n"))
		}
	})
}

// A defect that one machine meets ends the operation on that machine only.
func TestRun_survivesADefect(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		client := sitetest.NewClient(ironictest.Fleet(3))
		machines, err := client.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		op := operate.Maintenance(machine.Maintenance{On: true})
		does := op.Do
		op.Do = func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			if m.Node().Name == "node-001" {
				panic("index out of range")
			}
			return does(ctx, m, timeout)
		}
		spans := tracingtest.NewSpans()
		ctx, end := spans.Under(t.Context(), "metal")
		runner := &operate.Runner{Site: client.Site, Parallel: 1}
		for range 2 { // the second time, nothing may be locked by the first
			for _, r := range runner.Run(ctx, op, operate.Tasks(op, machines, operate.Seen{Now: client.Ironic.ServerNow()})) {
				if r.Node.Name != "node-001" {
					if r.Outcome != operate.Done && r.Outcome != operate.Unchanged {
						t.Errorf("node %s: %s: %v", r.Node.Name, r.Outcome, r.Err)
					}
					continue
				}
				if r.Outcome != operate.Failed || !strings.Contains(r.Err.Error(), "node-001") ||
					!strings.Contains(r.Err.Error(), "a defect in metal has ended metal maintenance on: index out of range") {
					t.Errorf("node-001: %s: %v", r.Outcome, r.Err)
				}
			}
		}
		end()
		if tree := spans.Tree(); strings.Count(tree, "maintenance on 0s !_OTHER") != 2 {
			t.Errorf("the spans are\n%s", tree)
		}
	})
}
