package host

import (
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// bare is a model in which everything is null.
func bare() *model {
	texts := types.MapNull(types.StringType)
	return &model{
		BMC: types.ObjectNull(nil), DriverInfo: texts, Ports: types.MapNull(portType), PortGroups: types.MapNull(groupType),
		BIOSSettings: texts, RAID: types.ObjectNull(nil), Firmware: texts,
	}
}

// A reserved host that another client has moved returns to the pool, if only an allocation has it; else the plan says why not.
func TestSteps_ofReservedHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		target, state string
		allocated     bool
		walks, warns  bool
	}{
		{"available", "available", true, false, false},
		{"available", "manageable", true, true, false},
		{"available", "clean failed", true, true, false},
		{"available", "manageable", false, false, true},
		{"manageable", "available", true, false, true},
		{"manageable", "manageable", true, false, false},
		{"available", "deleting", true, false, false},
		{"available", "active", true, false, false},
		{"available", "deploy failed", true, false, false},
		{"enroll", "available", true, false, false},
		{"", "manageable", true, false, false}, // an import takes reserved hosts for available ones
	} {
		state := bare()
		state.TargetState, state.ProvisionState, state.PowerManaged = types.StringValue("available"), types.StringValue(tt.state), types.BoolValue(true)
		state.Inspect, state.InstanceID = types.BoolValue(true), types.StringValue("u")
		if tt.allocated {
			state.AllocationID = state.InstanceID
		}
		plan, config := *state, *state
		config.TargetState = types.StringNull()
		if tt.target != "" {
			plan.TargetState, config.TargetState = types.StringValue(tt.target), types.StringValue(tt.target)
		}
		s := stepsFrom(state, &plan, &config, notes{applied: true})
		var diags diag.Diagnostics
		plan.warnStray(&config, state, s, &diags)
		if s != (steps{walks: tt.walks}) || (len(diags) > 0) != tt.warns {
			t.Errorf("%s, target %q, allocated %v: steps %+v, warnings %v", tt.state, tt.target, tt.allocated, s, diags)
		}
		if (tt.walks || tt.warns) && plan.nothingToDecide(t.Context(), nil, notes{applied: true, inspected: true}) {
			t.Errorf("%s, target %q: the plan is left out", tt.state, tt.target)
		}
	}
}

func TestBring_reservedHostReturnsToThePool(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		ctx, fake := t.Context(), ironictest.Fleet(1)
		h := &host{}
		h.Client = provision.New(provision.Config{Config: ironic.Config{Endpoint: "http://ironic.test", Auth: ironic.AuthNone, Transport: fake, PollInterval: ironictest.Poll}})
		allocation, _ := ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{"resource_class": "baremetal", "name": "web"})["uuid"].(string)
		time.Sleep(time.Minute)
		id, _ := ironictest.AsOther(t, fake, http.MethodGet, "allocations/web", nil)["node_uuid"].(string)
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/provision", map[string]any{"target": "manage"})
		node, err := h.Client.Node(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		was, config := bare(), bare()
		was.fromNode(ctx, sight{node: node}, true)
		config.TargetState = types.StringValue("available")
		plan := *was
		plan.TargetState = config.TargetState
		c := &change{config: config, plan: &plan, state: was, steps: stepsFrom(was, &plan, config, notes{applied: true}), limit: time.Hour, machine: h.Client.Record(node)}
		if doing, err := h.bring(ctx, c); err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
		if now := c.node(); now.ProvisionState != "available" || now.InstanceUUID != allocation {
			t.Errorf("the node is %s, reserved by %q", now.ProvisionState, now.InstanceUUID)
		}
	})
}
