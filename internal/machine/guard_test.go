package machine_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// recorder is a guard that allows everything, and records the steps that it is asked about.
type recorder struct {
	mu    sync.Mutex
	steps []machine.Step
}

func (r *recorder) Check(_ context.Context, step machine.Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step)
	return nil
}

// A guard decides by driver_info, which the short lists of polling do not contain.
func TestGuard_seesDriverInfo(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = 30 * time.Minute
		fake.Set("node-000", "provision_state", "enroll")
		fake.Set("node-000", "driver_info", map[string]any{"server_hardware_uri": "/rest/server-hardware/1"})
		guard := &recorder{}
		client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Guard = guard })
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		if _, err := client.Reach(t.Context(), id, states.GoalAvailable, 5*time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := client.SetPower(t.Context(), id, true, time.Hour); err != nil {
			t.Fatal(err)
		}
		var got []machine.Step
		for _, step := range guard.steps {
			if step.Node.DriverInfo["server_hardware_uri"] != "/rest/server-hardware/1" {
				t.Errorf("before %s%s, at stage %d, driver_info is missing", step.Verb, step.Power, step.Stage)
			}
			rest := map[bool]time.Duration{true: 5*time.Hour - fake.StepTime, false: time.Hour}[step.Verb != ""]
			if step.Stage == machine.BeforeQueue {
				// of the walk after the verification, and of the power change
				ironictest.WantNear(t, "the time for the check", step.Limit.Round(time.Minute), rest)
			}
			step.Node, step.Limit = nil, 0
			got = append(got, step)
		}
		want := []machine.Step{
			{Verb: nodes.TargetProvide, Stage: machine.BeforeQueue},
			{Verb: nodes.TargetProvide, Stage: machine.BeforeVerb},
			{Power: nodes.PowerOn, Stage: machine.BeforeQueue},
			{Power: nodes.PowerOn, Stage: machine.BeforeVerb},
		}
		if !slices.Equal(got, want) {
			t.Errorf("steps = %v, want %v", got, want)
		}
	})
}

// refuser is a guard that refuses one stage.
type refuser machine.Stage

var errTaken = errors.New("others use this machine")

func (r refuser) Check(_ context.Context, step machine.Step) error {
	if step.Stage == machine.Stage(r) {
		return errTaken
	}
	return nil
}

func TestGuard_refusalLeavesNode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stage  machine.Stage
		writes bool
	}{
		"before anything is written": {machine.BeforeWrite, false},
		"before the queue":           {machine.BeforeQueue, true},
		"before the verb":            {machine.BeforeVerb, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Reserved(t, time.Minute)
				client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Guard = refuser(tt.stage) })
				_, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
				if !errors.Is(err, errTaken) {
					t.Errorf("error = %v, want the guard's", err)
				}
				if sent := ironictest.Verbs(t, fake, id); len(sent) > 0 {
					t.Errorf("verbs were sent: %v", sent)
				}
				wrote := slices.ContainsFunc(fake.Requests(), func(r fakeironic.Request) bool { return r.Method != http.MethodGet })
				if wrote != tt.writes {
					t.Errorf("the node was written: %t, want %t", wrote, tt.writes)
				}
			})
		})
	}
}
