package ironic_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// atWork are the states that take a slot.
var atWork = []string{
	"inspecting", "inspect wait", "cleaning", "clean wait", "deploying", "wait call-back", "deleting", "rescuing", "rescue wait", "unrescuing",
}

// run is a run of the provider: a client of its own on a shared Ironic.
func run(fake *fakeironic.Server, limit ironic.Limit) *ironic.Client {
	return ironic.New(ironic.Config{Endpoint: "http://ironic.test", Auth: ironic.AuthNone, Transport: fake, Limit: limit})
}

func upTo(hosts int) ironic.Limit {
	return ironic.Limit{Limit: throttle.Limit{Max: hosts, StuckAfter: 45 * time.Minute}, Coordination: ironic.CoordinationIronic}
}

// manageableFleet is a site whose hosts wait to be cleaned.
func manageableFleet(hosts int, step time.Duration) *fakeironic.Server {
	fake := &fakeironic.Server{}
	fake.AddFleet(hosts, "baremetal")
	for _, node := range fake.Nodes() {
		fake.Set(node.UUID, "provision_state", "manageable")
	}
	fake.StepTime = step
	return fake
}

// cleanAll makes every host of a site available, each by the run whose turn it is, and returns how long that took.
func cleanAll(t *testing.T, fake *fakeironic.Server, runs ...*ironic.Client) time.Duration {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for i, node := range fake.Nodes() {
		wg.Go(func() {
			if _, err := runs[i%len(runs)].Reach(t.Context(), node.UUID, ironic.GoalAvailable, time.Hour); err != nil {
				t.Errorf("host %s: %v", node.Name, err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func lockRecords(fake *fakeironic.Server) int {
	n := 0
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPost && strings.HasPrefix(r.Path, "/v1/chassis") && r.Status == http.StatusCreated {
			n++
		}
		if r.Method == http.MethodDelete && strings.HasPrefix(r.Path, "/v1/chassis") && r.Status == http.StatusNoContent {
			n--
		}
	}
	return n
}

func TestRunsThatShareAnIronicKeepToOneLimit(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(30, 10*time.Minute)
		took := cleanAll(t, fake, run(fake, upTo(5)), run(fake, upTo(5)), run(fake, upTo(5)))
		if peak := fake.MaxBusy(atWork...); peak != 5 {
			t.Errorf("%d hosts were at work at once, want 5", peak)
		}
		if ideal := 60 * time.Minute; took > ideal*105/100 {
			t.Errorf("took %s, more than 1.05 of %s", took, ideal)
		}
		if left := lockRecords(fake); left != 0 {
			t.Errorf("%d lock records are left", left)
		}
	})
}

func TestTheQueueCostsNoRequestOfItsOwn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(101, 10*time.Hour)
		client := run(fake, ironic.Limit{Limit: throttle.Limit{Max: 1}, Coordination: ironic.CoordinationIronic})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, node := range fake.Nodes() {
			wg.Go(func() {
				if _, err := client.Reach(ctx, node.UUID, ironic.GoalAvailable, 24*time.Hour); !errors.Is(err, context.Canceled) {
					t.Errorf("Reach = %v", err)
				}
			})
		}
		<-time.After(time.Minute)
		fake.ResetRequests()
		<-time.After(time.Hour)
		if got := len(fake.Requests()); got > 361 {
			t.Errorf("%d requests in an hour of waiting, want one look every 10 seconds", got)
		}
		start := time.Now()
		cancel()
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("cancelled hosts left the queue after %s, want at once", took)
		}
	})
}

func TestTimeLimitsBeginAtAdmission(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(12, 40*time.Minute) // six rounds of 40 minutes, and an hour for each host
		cleanAll(t, fake, run(fake, upTo(2)))
	})
}

func TestARunThatDiesWithTheLockDelaysOthersByTheLease(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(3, time.Minute)
		// The first run's DELETE of the lock never arrives: it is as if it had been killed.
		killed, kill := context.WithCancel(t.Context())
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/v1/chassis/") && killed.Err() == nil {
				kill()
			}
			if r.Method == http.MethodDelete && killed.Err() != nil && r.Header.Get("User-Agent") == "dead gophercloud/v2.15.0" {
				return &fakeironic.Rejection{Drop: true}
			}
			return nil
		}
		dead := ironic.New(ironic.Config{Endpoint: "http://ironic.test", Auth: ironic.AuthNone, Transport: fake, Limit: upTo(2), UserAgent: "dead"})
		hosts := fake.Nodes()
		go func() { _, _ = dead.Reach(killed, hosts[0].UUID, ironic.GoalAvailable, time.Hour) }()
		<-killed.Done()
		start := time.Now()
		if _, err := run(fake, upTo(2)).Reach(t.Context(), hosts[1].UUID, ironic.GoalAvailable, time.Hour); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start) - time.Minute; waited > 75*time.Second {
			t.Errorf("the lock of a dead run delayed another by %s, want at most the lease of a minute", waited)
		}
	})
}

func TestAnInterruptedRunLeavesNoLock(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]func(*http.Response) (*http.Response, error){
		"whose answer comes": func(r *http.Response) (*http.Response, error) { return r, nil },
		"whose answer is lost": func(r *http.Response) (*http.Response, error) {
			_ = r.Body.Close()
			return nil, syscall.ECONNRESET
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(2, time.Minute)
				ctx, interrupt := context.WithCancel(t.Context())
				client := newClient(fake, func(cfg *ironic.Config) {
					cfg.Limit = upTo(1)
					cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
						answer, err := fake.RoundTrip(r)
						if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chassis" || answer.StatusCode != http.StatusCreated {
							return answer, err
						}
						interrupt()
						select {
						case <-r.Context().Done():
							_ = answer.Body.Close()
							return nil, r.Context().Err()
						case <-time.After(time.Second):
							return answers(answer)
						}
					})
				})
				if _, err := client.Reach(ctx, fake.Nodes()[0].UUID, ironic.GoalAvailable, time.Hour); !ironic.IsInterrupted(err) {
					t.Fatalf("Reach = %v", err)
				}
				if left := lockRecords(fake); left != 0 { // the process ends here
					t.Errorf("%d lock records are left", left)
				}
			})
		})
	}
}

func TestWithoutTheRightToLockTheLimitHoldsInTheRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(9, 10*time.Minute)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/chassis" {
				return &fakeironic.Rejection{Status: http.StatusForbidden, Body: `{"error_message": "{\"faultstring\": \"Access was denied\"}"}`}
			}
			return nil
		}
		client := run(fake, upTo(3))
		cleanAll(t, fake, client)
		if peak := fake.MaxBusy(atWork...); peak != 3 {
			t.Errorf("%d hosts were at work at once, want 3", peak)
		}
		if got := noticed(client, "holds in this run only"); got != 1 {
			t.Errorf("said %d times that the lock may not be written, want once", got)
		}
	})
}

// noticed counts the notices whose summary contains a text.
func noticed(client *ironic.Client, text string) int {
	n := 0
	for _, notice := range client.Notices() {
		if strings.Contains(notice.Summary, text) {
			n++
		}
	}
	return n
}

func TestHostsOfOthersCount(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(4, 10*time.Minute)
		hosts := fake.Nodes()
		fake.Set(hosts[0].UUID, "name", nil) // also one without a name
		for _, theirs := range hosts[:2] {
			fake.Set(theirs.UUID, "provision_state", "deploying")
		}
		client := run(fake, upTo(2))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		if _, err := client.Reach(ctx, hosts[2].UUID, ironic.GoalAvailable, time.Hour); ctx.Err() == nil {
			t.Fatalf("Reach = %v while others fill the limit", err)
		}
		fake.Set(hosts[0].UUID, "provision_state", "active")
		if _, err := client.Reach(t.Context(), hosts[2].UUID, ironic.GoalAvailable, time.Hour); err != nil {
			t.Errorf("Reach = %v though a slot is free", err)
		}
	})
}

func TestAHostThatHangsAgesOutAndIsNamed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(2, 10*time.Minute)
		hosts := fake.Nodes()
		fake.Set(hosts[0].UUID, "provision_state", "wait call-back")
		fake.Set(hosts[0].UUID, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
		fake.Set(hosts[0].UUID, "last_error", "DHCP is silent\nTraceback: …")
		client, start := run(fake, upTo(1)), time.Now()
		if _, err := client.Reach(t.Context(), hosts[1].UUID, ironic.GoalAvailable, time.Hour); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start) - 10*time.Minute; waited < 44*time.Minute || waited > 47*time.Minute {
			t.Errorf("the host that hangs blocked the slot for %s, want 45 minutes", waited)
		}
		want := fmt.Sprintf("A host hangs. Node %s (%s) has been in state \"wait call-back\" since %s, and does not count against provisioning_limit any more. "+
			"Its last error: DHCP is silent", hosts[0].Name, hosts[0].UUID, start.UTC().Format(time.RFC3339))
		if got := notices(client, "hangs"); !slices.Equal(got, []string{want}) {
			t.Errorf("said %q, want %q", got, want)
		}
	})
}

func TestExemptHostsNeverWait(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(20, 10*time.Minute)
		limit := upTo(1)
		limit.Exempt = []string{"fak*"}
		if took := cleanAll(t, fake, run(fake, limit)); took > 11*time.Minute {
			t.Errorf("took %s, want all at once", took)
		}
	})
}

func TestAHostThatFailedWaitsBehindFreshOnesInTheNextRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(4, 10*time.Minute)
		hosts := fake.Nodes()
		bad, other, mended := hosts[0].UUID, hosts[3].UUID, false
		fake.Fail = func(node fakeironic.Node, verb string) string {
			if node.UUID == bad && verb == "provide" && !mended {
				return "disk on fire"
			}
			return ""
		}
		if _, err := run(fake, upTo(1)).Reach(t.Context(), bad, ironic.GoalAvailable, time.Hour); err == nil {
			t.Fatal("cleaning did not fail")
		}
		mended = true
		fake.Set(other, "provision_state", "deploying") // somebody has the slot, so that all three have to wait
		next := run(fake, upTo(1))
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, id := range []string{bad, hosts[1].UUID, hosts[2].UUID} {
			wg.Go(func() {
				if _, err := next.Reach(t.Context(), id, ironic.GoalAvailable, time.Hour); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, id)
			})
			<-time.After(time.Second)
		}
		fake.Set(other, "provision_state", "active")
		wg.Wait()
		if want := []string{hosts[1].UUID, hosts[2].UUID, bad}; !slices.Equal(order, want) {
			t.Errorf("order %v, want the one that failed last: %v", order, want)
		}
		if node, _ := fake.Node(bad); node.Raw["extra"].(map[string]any)["terraform_metal_failures"] != nil { //nolint:forcetypeassert // the fake's own
			t.Error("failures are not forgotten after a success")
		}
	})
}

func TestIronicsOwnLimitBelowOursMeansWait(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.82", "1.115"} { // 500 and 503
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{MaxMicroversion: version, MaxConcurrentClean: 1, StepTime: 0}
				fake.AddFleet(4, "baremetal")
				for _, node := range fake.Nodes() {
					fake.Set(node.UUID, "provision_state", "active")
					fake.Set(node.UUID, "instance_uuid", node.UUID)
				}
				fake.StepTime = 5 * time.Minute
				client := run(fake, upTo(4))
				var wg sync.WaitGroup
				for _, node := range fake.Nodes() {
					wg.Go(func() {
						done, err := client.Undeploy(t.Context(), node.UUID, node.UUID, "", time.Hour)
						if err != nil || done.Node.ProvisionState != "available" {
							t.Errorf("host %s: %+v, %v", node.Name, done, err)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

func TestUnusedSlotsAreSaidOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		hosts, parallelism int
		stagger            time.Duration // between the first ones
		want               int
	}{
		{40, 5, 0, 1}, {30, 10, 0, 1}, {30, 10, 40 * time.Second, 1}, {20, 10, 0, 0}, {30, 30, 0, 0},
	} {
		t.Run(fmt.Sprintf("%d by %d every %s", tc.hosts, tc.parallelism, tc.stagger), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(tc.hosts, 10*time.Minute)
				client := run(fake, upTo(20))
				parallelism := make(chan struct{}, tc.parallelism) // Terraform's
				said := 0
				var mu sync.Mutex
				var wg sync.WaitGroup
				for i, node := range fake.Nodes() {
					wg.Go(func() {
						<-time.After(time.Duration(min(i, tc.parallelism)) * tc.stagger)
						parallelism <- struct{}{}
						defer func() { <-parallelism }()
						if _, err := client.Reach(t.Context(), node.UUID, ironic.GoalAvailable, time.Hour); err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						said += noticed(client, "Slots are unused")
					})
				}
				wg.Wait()
				if said != tc.want {
					t.Errorf("said %d times that -parallelism leaves slots unused, want %d", said, tc.want)
				}
			})
		})
	}
}

func TestFewHostsAreNoReasonToSpeakOfParallelism(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(5, 10*time.Minute)
		client := run(fake, upTo(20))
		for range 4 { // host, then deployment, then … of the same machines
			cleanAll(t, fake, client)
			for _, node := range fake.Nodes() {
				fake.Set(node.UUID, "provision_state", "manageable")
			}
		}
		if noticed(client, "Slots are unused") != 0 {
			t.Error("five hosts used all that they could")
		}
	})
}

// TestRandomSites runs the whole gate, several runs on one fake Ironic, through random sites with lost answers and runs
// that are stopped, and checks that the limit holds and everybody who stays gets a turn.
func TestRandomSites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { randomSite(t, rand.New(rand.NewPCG(seed, 3))) }) //nolint:gosec // a test
		})
	}
}

func randomSite(t *testing.T, r *rand.Rand) {
	limit := 1 + r.IntN(5)
	fake := manageableFleet(5+r.IntN(15), time.Duration(1+r.IntN(30))*time.Minute)
	var mu sync.Mutex
	fake.Reject = func(req *http.Request) *fakeironic.Rejection {
		mu.Lock()
		defer mu.Unlock()
		if req.Method != http.MethodGet && r.IntN(20) == 0 {
			return &fakeironic.Rejection{Drop: true, After: r.IntN(2) == 0}
		}
		return nil
	}
	runs := make([]*ironic.Client, 1+r.IntN(4))
	contexts := make([]context.Context, len(runs))
	for i := range runs {
		runs[i] = newClient(fake, func(cfg *ironic.Config) { cfg.Limit = upTo(limit) })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		contexts[i] = ctx
		if i > 0 && r.IntN(3) == 0 {
			time.AfterFunc(time.Duration(r.IntN(3600))*time.Second, cancel)
		}
	}
	var wg sync.WaitGroup
	for i, node := range fake.Nodes() {
		mu.Lock()
		pause := time.Duration(r.IntN(300)) * time.Second
		mu.Unlock()
		wg.Go(func() {
			<-time.After(pause)
			ctx := contexts[i%len(runs)]
			if _, err := runs[i%len(runs)].Reach(ctx, node.UUID, ironic.GoalAvailable, 48*time.Hour); err != nil && ctx.Err() == nil {
				t.Errorf("host %s: %v", node.Name, err)
			}
		})
	}
	wg.Wait()
	if peak := fake.MaxBusy(atWork...); peak > limit {
		t.Errorf("%d hosts were at work at once, and the limit is %d", peak, limit)
	}
}

func TestARunThatIronicRefusesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{MaxConcurrentClean: 1, StepTime: time.Hour}
		fake.AddFleet(9, "baremetal")
		hosts := fake.Nodes()
		fake.Set(hosts[0].UUID, "provision_state", "cleaning") // by others: as many as Ironic cleans at once
		fake.Set(hosts[1].UUID, "provision_state", "active")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := run(fake, upTo(9)).Reach(t.Context(), hosts[1].UUID, ironic.GoalUndeployed, 3*time.Hour); err != nil {
				t.Error(err)
			}
		})
		other := run(fake, upTo(9))
		for _, host := range hosts[2:] { // from time to time, while the first run is refused again and again
			<-time.After(time.Minute)
			start := time.Now()
			wg.Go(func() {
				if _, err := other.Reach(t.Context(), host.UUID, ironic.GoalDeployed, 3*time.Hour); err != nil {
					t.Error(err)
				}
			})
			<-time.After(10 * time.Second) // the lock is asked for several times a second
			if node, _ := fake.Node(host.UUID); node.ProvisionState != "deploying" {
				t.Errorf("host %s is %s %s after it came to the queue", host.Name, node.ProvisionState, time.Since(start))
			}
		}
		fake.Set(hosts[0].UUID, "provision_state", "available")
		wg.Wait()
	})
}

// notices are those whose summary contains a text, as the user reads them.
func notices(client *ironic.Client, text string) []string {
	var all []string
	for _, notice := range client.Notices() {
		if strings.Contains(notice.Summary, text) {
			all = append(all, notice.Summary+". "+notice.Detail)
		}
	}
	return all
}

func TestHowManyWaitedIsToldOnceTheyHaveAllHadTheirTurn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(12, 10*time.Minute)
		hosts := fake.Nodes()
		fake.Set(hosts[11].UUID, "provision_state", "deploying") // by others, for an hour
		fake.Set(hosts[11].UUID, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
		client := newClient(fake, func(cfg *ironic.Config) { cfg.Limit = upTo(4) })
		var mu sync.Mutex
		var told []string
		wave := func(hosts []fakeironic.Node) []string {
			told = nil
			var wg sync.WaitGroup
			for _, host := range hosts {
				wg.Go(func() {
					if _, err := client.Reach(t.Context(), host.UUID, ironic.GoalAvailable, time.Hour); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					told = append(told, notices(client, "waited")...) // at the end of every resource
				})
			}
			wg.Wait()
			return told
		}
		if got := wave(hosts[:3]); len(got) > 0 {
			t.Errorf("nobody waited, and it says %q", got)
		}
		for _, want := range []string{
			"Hosts waited for their turn: 2 so far. The longest waited for a provisioning slot for 10m0s. provisioning_limit.max_hosts is 4; others used up to 1 of these slots.",
			"Hosts waited for their turn: 4 so far. The longest waited for a provisioning slot for 10m0s. provisioning_limit.max_hosts is 4; others used up to 1 of these slots.",
		} {
			got := wave(hosts[3:8])
			if len(got) != 1 || got[0] != want {
				t.Errorf("said %q, want once %q", got, want)
			}
			for _, host := range hosts[3:8] {
				fake.Set(host.UUID, "provision_state", "manageable")
			}
		}
		if got := wave(hosts[8:9]); len(got) > 0 {
			t.Errorf("nobody else waited, and it says %q", got)
		}
	})
}

// TestCountAgentLimitsThoseWhoseAgentHasReported is about the rule of the guide: hosts that only boot do not count.
func TestCountAgentLimitsThoseWhoseAgentHasReported(t *testing.T) {
	t.Parallel()
	for reported, want := range map[string]bool{"": true, "https://192.0.2.1:9999": false} { // is another host let in?
		inVirtualTime(t, func(t *testing.T) {
			fake := manageableFleet(2, 10*time.Minute)
			hosts := fake.Nodes()
			fake.Set(hosts[0].UUID, "provision_state", "wait call-back")
			fake.Set(hosts[0].UUID, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
			fake.Set(hosts[0].UUID, "driver_internal_info", map[string]any{"agent_url": reported})
			limit := upTo(1)
			limit.Count = ironic.CountAgent
			ctx, enough := context.WithTimeout(t.Context(), 30*time.Minute)
			defer enough()
			if _, err := run(fake, limit).Reach(ctx, hosts[1].UUID, ironic.GoalAvailable, time.Hour); (err == nil) != want {
				t.Errorf("beside a host whose agent is at %q: %v", reported, err)
			}
		})
	}
}
