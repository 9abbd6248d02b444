package operate_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

const (
	fleet = 60
	limit = 20
	// requestsEach is how many requests an operation may need for a machine. Polls of all machines are shared.
	requestsEach = 12
)

// atWork are the states that take a slot of the limit.
var atWork = []string{"deploying", "wait call-back", "deleting", "cleaning", "clean wait", "inspecting", "inspect wait"}

// client is a client of a fake that shares the limit with all others. It has the guard of metal at a site without OneView.
func client(fake *fakeironic.Server) *sitetest.Client {
	return sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit, cfg.Guard = sitetest.UpTo(limit), sharing.NotConfigured{} })
}

// begin is a command of an operator on machines of a fake.
func begin(t *testing.T, site *sitetest.Client, op operate.Operation, machines []ironic.Node) []operate.Result {
	t.Helper()
	runner := &operate.Runner{Site: site.Site, Parallel: 100, By: "eve@desk"}
	return runner.Run(t.Context(), op, operate.Tasks(op, machines, operate.Look(t.Context(), site.Site, machines)))
}

// want checks that all results are of an outcome.
func want(t *testing.T, results []operate.Result, outcome operate.Outcome) {
	t.Helper()
	for _, r := range results {
		if r.Outcome != outcome {
			t.Errorf("node %s: %s, want %s: %v", r.Node.Name, r.Outcome, outcome, r.Err)
		}
	}
}

// Many machines are inspected or restarted under the limit, with few requests each.
func TestFleet_keepsTheLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		op    operate.Operation
		fleet int
	}{"inspect": {operate.Inspect(nil), fleet}, "reboot": {operate.Power(machine.ActionReboot), 500}} {
		t.Run(name, func(t *testing.T) {
			op, fleet := tt.op, tt.fleet
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(fleet)
				fake.StepTime = time.Minute
				site := client(fake)
				machines, err := site.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
				if err != nil {
					t.Fatal(err)
				}
				fake.ResetRequests()
				want(t, begin(t, site, op, machines), operate.Done)
				peak := fake.MaxBusy(atWork...)
				if name == "reboot" {
					peak = mostStarts(fake, fake.StepTime)
				}
				if peak != limit {
					t.Errorf("%d machines were at work at once, and the limit is %d", peak, limit)
				}
				own := 0
				for _, r := range fake.Requests() {
					if strings.HasPrefix(r.Path, "/v1/nodes/") && !strings.HasPrefix(r.Path, "/v1/nodes/detail") {
						own++
					}
				}
				t.Logf("%d requests for %d machines, %d of them about one", len(fake.Requests()), fleet, own)
				if own > requestsEach*fleet {
					t.Errorf("%d requests for %d machines, want at most %d each", own, fleet, requestsEach)
				}
			})
		})
	}
}

// Machines that wait for a slot stay in the pool, where allocations may reserve them, and return to it without another wait.
func TestFleet_leavesWaitingMachinesInThePool(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(fleet)
		fake.StepTime = time.Minute
		site := client(fake)
		machines, err := site.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan bool)
		go func() {
			defer close(done)
			want(t, begin(t, site, operate.Inspect(nil), machines), operate.Done)
		}()
		looks := 0
		for {
			select {
			case <-done:
				if looks < 10 {
					t.Errorf("%d looks", looks)
				}
				return
			case <-time.After(10 * time.Second):
			}
			looks++
			away := 0
			for _, n := range fake.Nodes() {
				if n.ProvisionState != "available" {
					away++
				}
			}
			if away > limit {
				t.Errorf("%d machines are out of the pool, and %d may be at work", away, limit)
			}
		}
	})
}

// mostStarts returns how many machines were being started at once, if a start takes so long.
func mostStarts(fake *fakeironic.Server, long time.Duration) (most int) {
	var begun []time.Time
	for _, r := range fake.Requests() {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.Path, "/states/power") || r.Status >= http.StatusBadRequest {
			continue
		}
		begun = append(slices.DeleteFunc(begun, func(at time.Time) bool { return !r.Time.Before(at.Add(long)) }), r.Time)
		most = max(most, len(begun))
	}
	return most
}

// Two operators and a run of Terraform work at once: the limit holds for all of them together, and no operator touches what the run has
// reserved.
func TestFleet_operatorsAndAnApply(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		const deployed = 10
		fake := ironictest.Fleet(fleet)
		fake.StepTime = time.Minute
		apply := client(fake)
		machines, err := apply.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		instances := map[string]string{}
		for _, n := range machines[:deployed] {
			instances[n.UUID] = ironic.NewUUID()
			if _, err := apply.ReserveNode(t.Context(), n.UUID, instances[n.UUID]); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for id, instance := range instances {
			all.Go(func() {
				if _, _, err := apply.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance)); err != nil {
					t.Errorf("the apply: %v", err)
				}
			})
		}
		var first, second []operate.Result
		all.Go(func() { first = begin(t, client(fake), operate.Inspect(nil), machines[:fleet/2]) })
		all.Go(func() { second = begin(t, client(fake), operate.Inspect(nil), machines[fleet/2:]) })
		all.Wait()
		want(t, first[:deployed], operate.Refused)
		want(t, first[deployed:], operate.Done)
		want(t, second, operate.Done)
		if peak := fake.MaxBusy(atWork...); peak != limit {
			t.Errorf("%d machines were at work at once, and the limit is %d", peak, limit)
		}
		for id, instance := range instances {
			if n := ironictest.NodeOf(t, fake, id); n.ProvisionState != "active" || n.Raw["instance_uuid"] != instance {
				t.Errorf("node %s is %s, reserved by %v, want active and %s", n.Name, n.ProvisionState, n.Raw["instance_uuid"], instance)
			}
			for _, verb := range ironictest.Verbs(t, fake, id) {
				if verb == "manage" || verb == "inspect" || verb == "provide" {
					t.Errorf("node %s got %s while it was reserved", id, verb)
				}
			}
		}
		if n := ironictest.Count(fake, http.MethodPut, "/v1/nodes/"); n == 0 {
			t.Error("nothing was sent")
		}
	})
}

// Two operators give the same command. The second one is told of the first, whose machines wait for a slot, and repeats nothing unless he
// confirms it.
func TestFleet_refusesTheSameCommandOfAnother(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(limit + 5)
		fake.StepTime = time.Minute
		second := client(fake)
		machines, err := second.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		before := operate.Tasks(operate.Inspect(nil), machines, operate.Look(t.Context(), second.Site, machines))
		var first sync.WaitGroup
		first.Go(func() { want(t, begin(t, client(fake), operate.Inspect(nil), machines), operate.Done) })
		time.Sleep(30 * time.Second)
		runner := &operate.Runner{Site: second.Site, Parallel: 100, By: "bob@desk"}
		want(t, runner.Run(t.Context(), operate.Inspect(nil), before), operate.Refused)
		if machines, err = second.Ironic.ListNodes(t.Context(), ironic.NodeFilter{}); err != nil {
			t.Fatal(err)
		}
		for _, task := range operate.Tasks(operate.Inspect(nil), machines, operate.Look(t.Context(), second.Site, machines)) {
			if !strings.Contains(task.Told.AtWork, "metal inspect of eve@desk") || task.Told.Harm < operate.Cuts {
				t.Errorf("node %s (%s): nobody is told of the first command: %+v", task.Node.Name, task.Node.ProvisionState, task.Told)
			}
		}
		first.Wait()
	})
}
