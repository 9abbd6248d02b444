package machine_test

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// since returns the requests logged from a moment on.
func since(fake *fakeironic.Server, moment time.Time) []fakeironic.Request {
	var out []fakeironic.Request
	for _, r := range fake.Requests() {
		if !r.Time.Before(moment) {
			out = append(out, r)
		}
	}
	return out
}

// cleaningFleet is n nodes that are all manageable, and cleaned in an hour.
func cleaningFleet(n int) *fakeironic.Server {
	fake := ironictest.Fleet(n)
	for _, node := range fake.Nodes() {
		fake.Set(node.UUID, "provision_state", "manageable")
	}
	fake.StepTime = time.Hour
	return fake
}

func TestPolling_oneListForAll(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := cleaningFleet(60)
		client := sitetest.NewClient(fake)
		start := time.Now()
		reachAll(t, fake, client, states.GoalAvailable, 2*time.Hour)
		polls := map[int]int{}
		for _, r := range since(fake, start.Add(ironictest.Poll)) { // waiters are young before
			if !r.Time.Before(start.Add(time.Hour)) {
				break // they have arrived, and are read once more
			}
			if r.Path != "/v1/nodes" || !strings.Contains(r.Query, "fields=") {
				t.Fatalf("%s %s?%s while waiting", r.Method, r.Path, r.Query)
			}
			polls[int(r.Time.Sub(start)/ironictest.Poll)]++
		}
		for interval, n := range polls {
			if most := 20/interval + 1; n > most {
				t.Errorf("%d lists in minute %d, want %d at most: one in a twentieth of the time", n, interval, most)
			}
		}
		if len(polls) < 50 {
			t.Errorf("%d intervals with a list: no poll", len(polls))
		}
	})
}

func TestPolling_fewWaiters(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := cleaningFleet(3)
		client := sitetest.NewClient(fake)
		reachAll(t, fake, client, states.GoalAvailable, 2*time.Hour)
		for _, r := range fake.Requests() {
			if r.Path == "/v1/nodes" {
				t.Fatal("the whole fleet was listed for three nodes")
			}
		}
	})
}

func TestPolling_endsWithoutWaiters(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := cleaningFleet(5)
		client := sitetest.NewClient(fake)
		reachAll(t, fake, client, states.GoalAvailable, 2*time.Hour)
		fake.ResetRequests()
		<-time.After(time.Hour)
		if got := fake.Requests(); len(got) != 0 {
			t.Errorf("%d requests after the last walk", len(got))
		}
	})
}

func TestPolling_outage(t *testing.T) {
	t.Parallel()
	for name, rejection := range map[string]*fakeironic.Rejection{
		"bad gateway": {Status: http.StatusBadGateway, Body: "<html><title>502 Bad Gateway</title></html>"},
		"reset":       {Drop: true},
		"no words":    ironictest.Fault(http.StatusInternalServerError, "QueuePool limit of size 5 overflow 50 reached"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := cleaningFleet(5)
				client := sitetest.NewClient(fake)
				start := time.Now()
				fake.Reject = func(*http.Request) *fakeironic.Rejection {
					if since := time.Since(start); since > 10*time.Minute && since < 40*time.Minute {
						return rejection
					}
					return nil
				}
				reachAll(t, fake, client, states.GoalAvailable, 2*time.Hour)
			})
		})
	}
}

// Giving up a deployment that is under way means to undeploy it: a poll that fails right after the verb is repeated, too.
func TestPolling_failedPollAfterVerb(t *testing.T) {
	t.Parallel()
	for _, why := range []error{
		&net.DNSError{Err: "server misbehaving", Name: "ironic.test"},
		&net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH},
	} {
		t.Run(why.Error(), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, instance := sitetest.Reserved(t, 20*time.Minute)
				client := sitetest.NewClient(fake, func(c *machine.Config) { c.Transport = &cutOff{RoundTripper: fake, why: why} })
				node, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), sitetest.OnceIn4h(instance))
				if err != nil || node.ProvisionState != "active" {
					t.Errorf("%+v, %v", node, err)
				}
				if got := ironictest.Verbs(t, fake, id); len(got) != 1 {
					t.Errorf("verbs = %v", got)
				}
			})
		})
	}
}

// cutOff is an Ironic that is unreachable for some polls after the first verb.
type cutOff struct {
	http.RoundTripper
	why   error
	looks atomic.Int32
}

func (c *cutOff) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		c.looks.Store(3)
	} else if c.looks.Add(-1) >= 0 {
		return nil, c.why
	}
	return c.RoundTripper.RoundTrip(r)
}

func TestPolling_outageTimesOut(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := cleaningFleet(5)
		client := sitetest.NewClient(fake)
		start := time.Now()
		fake.Reject = func(*http.Request) *fakeironic.Rejection {
			if time.Since(start) > 10*time.Minute {
				return &fakeironic.Rejection{Status: http.StatusBadGateway}
			}
			return nil
		}
		var wg sync.WaitGroup
		for _, node := range fake.Nodes() {
			wg.Go(func() {
				seen, err := client.Reach(t.Context(), node.UUID, states.GoalAvailable, 2*time.Hour)
				if err == nil || seen == nil || seen.ProvisionState != "cleaning" {
					t.Errorf("Reach = %+v, %v, want the node as last seen and a timeout", seen, err)
				}
			})
		}
		wg.Wait()
		ironictest.WantNear(t, "giving up", time.Since(start), 2*time.Hour)
	})
}

func TestPolling_laterNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) { // ordinary lists leave child nodes out
		fake := cleaningFleet(12)
		fake.MaxMicroversion = "1.100"
		fake.Set("node-001", "parent_node", ironictest.NodeOf(t, fake, "node-000").UUID)
		reachAll(t, fake, sitetest.NewClient(fake), states.GoalAvailable, 2*time.Hour)
		// at first, after the verb, and at last
		if singles := ironictest.Count(fake, http.MethodGet, "/v1/nodes/"+ironictest.NodeOf(t, fake, "node-001").UUID); singles > 3 {
			t.Errorf("the child was read singly %d times", singles)
		}
	})
}

func TestSetPower_waits(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = 10 * time.Minute
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		start := time.Now()
		node, err := client.SetPower(t.Context(), id, true, time.Hour)
		if err != nil || node.PowerState != "power on" {
			t.Fatalf("SetPower = %+v, %v", node, err)
		}
		ironictest.WantNear(t, "switching", time.Since(start), 10*time.Minute)
		fake.ResetRequests()
		if _, err := client.SetPower(t.Context(), id, true, time.Hour); err != nil || ironictest.Count(fake, http.MethodPut, "/") != 0 {
			t.Errorf("switching on what is on: %v, %v", err, fake.Requests())
		}
	})
}

func TestSetPower_failure(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = 10 * time.Minute
		fake.Fail = func(fakeironic.Node, string) string {
			return "Failed to change power state to 'power on': the BMC is asleep"
		}
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		if _, err := client.SetPower(t.Context(), id, true, time.Hour); err == nil || !strings.Contains(err.Error(), "the BMC is asleep") {
			t.Errorf("SetPower = %v, want last_error", err)
		}
		fake.Fail = nil
		if _, err := client.SetPower(t.Context(), id, true, time.Minute); err == nil || !strings.Contains(err.Error(), "after 1m0s") {
			t.Errorf("SetPower = %v, want a timeout", err)
		}
	})
}
