package guides_test

import (
	"cmp"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// operatorOf returns the site as the operator's tool sees it.
func operatorOf(s *site.Site) *machine.Site {
	auth := api.AuthNone
	if os.Getenv("METAL_USERNAME") != "" {
		auth = api.AuthHTTPBasic
	}
	return machine.New(machine.Config{Config: api.Config{
		Endpoint: s.Endpoint, Auth: auth, Username: os.Getenv("METAL_USERNAME"), Password: os.Getenv("METAL_PASSWORD"),
		PollInterval: time.Second,
	}})
}

// do does an operation on a node, as a command of metal does.
func do(t *testing.T, s *site.Site, op operate.Operation, id string) {
	t.Helper()
	by := operatorOf(s)
	node, err := by.Ironic.Node(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	runner := operate.Runner{Site: by, Parallel: 1}
	if end := runner.Run(t.Context(), op, operate.Tasks(op, []ironic.Node{*node},
		operate.Seen{Now: by.Ironic.ServerNow()}))[0]; end.Outcome != operate.Done {
		t.Fatalf("metal %s: %s, %v", op.Command, cmp.Or(end.Outcome, "no outcome"), end.Err)
	}
}

// TestAccOperate_planTellsOfAnUndeployment: a machine that metal has undeployed is deployed again by the next apply, on the same node if it
// has kept its allocation.
func TestAccOperate_planTellsOfAnUndeployment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		release bool
		plan    string
	}{
		"kept":     {false, "Undeployed node is deployed again"},
		"released": {true, "Plan: 2 to add, 0 to change, 0 to destroy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			site.AddNode(t, s, "n1", nil)
			w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
				acctest.Allocated(acctest.Image("v1")))
			w.Must("apply", "-auto-approve")
			before := site.AllocationNamed(s, s.Name("web"))
			node := site.Text(before["node_uuid"])
			do(t, s, operate.Undeploy(nil, tt.release), node)
			acctest.Mention(t, w.Must("plan"), tt.plan)
			w.Must("apply", "-auto-approve")
			if now := s.Node(node); now["provision_state"] != "active" || (now["instance_uuid"] == before["uuid"]) == tt.release {
				t.Errorf("the node is %v and reserved by %v, before by %v", now["provision_state"], now["instance_uuid"], before["uuid"])
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// TestAccOperate_rescueIsLeftToTheOperator: no plan ends a rescue that the operator has begun.
func TestAccOperate_rescueIsLeftToTheOperator(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", map[string]any{"rescue_interface": "fake"})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	do(t, s, operate.Rescue("correct horse"), node)
	acctest.Mention(t, w.Must("plan"), "Machine is in rescue mode")
	do(t, s, operate.Unrescue(), node)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// TestAccOperate_releaseFreesTheNode: an allocation is released by its name, and the reservation of a node by its node.
func TestAccOperate_releaseFreesTheNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))))
	by := operatorOf(s)
	for _, find := range []func() (operate.Reservation, error){
		func() (operate.Reservation, error) {
			return operate.FindAllocation(t.Context(), by.Ironic, s.Name("web"))
		},
		func() (operate.Reservation, error) { return operate.FindReservation(t.Context(), by.Ironic, node) },
	} {
		w.Must("apply", "-auto-approve")
		held, err := find()
		if err == nil {
			err = operate.Release(t.Context(), by, held)
		}
		if now := s.Node(node); err != nil || now["instance_uuid"] != nil {
			t.Errorf("%v; the node is reserved by %v", err, now["instance_uuid"])
		}
		acctest.Mention(t, w.Must("plan"), "Plan: 1 to add, 0 to change, 0 to destroy")
	}
	w.Must("destroy", "-auto-approve")
}

// TestFakeExamples_runbookRunsOnADeployedMachine: the steps are those that Ironic has in a service, too.
func TestFakeExamples_runbookRunsOnADeployedMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	id := site.Text(s.Must(http.MethodPost, "nodes", map[string]any{"name": "rack1-01", "driver": "redfish", "driver_info": map[string]any{
		"redfish_address": "https://192.0.2.11", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
		"redfish_password": "the BMC's password",
	}})["uuid"])
	s.Must(http.MethodPut, "nodes/"+id+"/traits/CUSTOM_RACK1", nil)
	s.Fake.Set(id, "provision_state", "active")
	w := exampleWorkspace(t, s, read(t, examples+"/resources/metal_runbook/resource.tf"))
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	do(t, s, operate.Service(ironic.Order{Runbook: "bmc-maintenance"}), id)
	if versions, err := operatorOf(s).Ironic.Firmware(t.Context(), id); err != nil || versions["bmc"] != "7.10.30" {
		t.Errorf("the firmware is %v (%v)", versions, err)
	}
	// of the example of metal_service
	do(t, s, operate.Service(ironic.Order{Steps: []ironic.CleanStep{{Interface: "bios", Step: "factory_reset"}}, NoRamdisk: true}), id)
}
