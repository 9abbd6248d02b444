package host

import (
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// bare is a model in which everything is null.
func bare() *model {
	texts := types.MapNull(types.StringType)
	return &model{
		BMC: types.ObjectNull(nil), DriverInfo: texts, Ports: types.MapNull(portType), PortGroups: types.MapNull(groupType),
		BIOSSettings: texts, RAID: types.ObjectNull(nil), Firmware: texts,
	}
}

func TestChange_reservedHostReturnsToThePool(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		ctx, fake := t.Context(), ironictest.Fleet(1)
		h := &host{}
		h.Site = machine.New(machine.Config{Config: api.Config{
			Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake,
			PollInterval: ironictest.Poll,
		}})
		allocation, _ := ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
			"resource_class": "baremetal",
			"name":           "web",
		})["uuid"].(string)
		time.Sleep(time.Minute)
		id, _ := ironictest.AsOther(t, fake, http.MethodGet, "allocations/web", nil)["node_uuid"].(string)
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+id+"/states/provision", map[string]any{"target": "manage"})
		node, err := h.Site.Ironic.Node(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		was, config := bare(), bare()
		was.fromNode(ctx, sight{node: node}, true)
		config.TargetState = types.StringValue("available")
		plan := *was
		plan.TargetState = config.TargetState
		todo := hosts.Decide(plan.wish(ctx, config, was), was.seen(ctx, hosts.Notes{Applied: true}))
		c := &change{config: config, plan: &plan, state: was}
		c.begin(ctx, h, h.Site.Record(node), hosts.Order{Plan: todo, Limit: time.Hour})
		if doing, err := c.work.Do(ctx); err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
		if now := c.work.Node(); now.ProvisionState != "available" || now.InstanceUUID != allocation {
			t.Errorf("the node is %s, reserved by %q", now.ProvisionState, now.InstanceUUID)
		}
	})
}
