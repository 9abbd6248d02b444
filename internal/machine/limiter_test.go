package machine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// atWork are the states that take a slot.
var atWork = []string{
	"inspecting", "inspect wait", "cleaning", "clean wait", "deploying", "wait call-back", "deleting", "rescuing",
	"rescue wait", "unrescuing",
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
func cleanAll(t *testing.T, fake *fakeironic.Server, runs ...*sitetest.Client) time.Duration {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for i, node := range fake.Nodes() {
		wg.Go(func() {
			if _, err := runs[i%len(runs)].Reach(t.Context(), node.UUID, states.GoalAvailable, time.Hour); err != nil {
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

func TestGate_runsShareLimit(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(15, 10*time.Minute)
		took := cleanAll(t, fake, sitetest.Run(fake, sitetest.UpTo(5)), sitetest.Run(fake, sitetest.UpTo(5)),
			sitetest.Run(fake, sitetest.UpTo(5)))
		if peak := fake.MaxBusy(atWork...); peak != 5 {
			t.Errorf("%d hosts were at work at once, want 5", peak)
		}
		if ideal := 30 * time.Minute; took > ideal*105/100 {
			t.Errorf("took %s, more than 1.05 of %s", took, ideal)
		}
		if left := lockRecords(fake); left != 0 {
			t.Errorf("%d lock records are left", left)
		}
	})
}

func TestGate_queueNeedsNoRequests(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(101, 10*time.Hour)
		client := sitetest.Run(fake, throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, node := range fake.Nodes() {
			wg.Go(func() {
				if _, err := client.Reach(ctx, node.UUID, states.GoalAvailable, 24*time.Hour); !errors.Is(err, context.Canceled) {
					t.Errorf("Reach = %v", err)
				}
			})
		}
		<-time.After(time.Minute)
		fake.ResetRequests()
		<-time.After(10 * time.Minute)
		if got := len(fake.Requests()); got > 500 {
			t.Errorf("%d requests in ten minutes of waiting, want one list every 1.7 seconds, a round every 30, and a look for a freeze every 20", got)
		}
		start := time.Now()
		cancel()
		wg.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("cancelled hosts left the queue after %s, want at once", took)
		}
	})
}

func TestGate_timeLimitBeginsAtAdmission(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(12, 4*time.Minute) // six rounds of 4 minutes, and 6 minutes for each host
		reachAll(t, fake, sitetest.Run(fake, sitetest.UpTo(2)), states.GoalAvailable, 6*time.Minute)
	})
}

func TestGate_deadRunDelaysByLease(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
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
		dead := sitetest.NewSite(machine.Config{Config: api.Config{
			Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake,
			UserAgent: "dead",
		}, Limit: sitetest.UpTo(2)})
		hosts := fake.Nodes()
		go func() { _, _ = dead.Reach(killed, hosts[0].UUID, states.GoalAvailable, time.Hour) }()
		<-killed.Done()
		waited := admitted(t, fake, sitetest.Run(fake, sitetest.UpTo(2)), hosts[1].UUID)
		// chassis have times of whole seconds, and tries are up to 0.4 seconds apart
		if waited < 59*time.Second || waited > 62*time.Second {
			t.Errorf("the lock of a dead run delayed another by %s, want the lease of a minute", waited)
		}
	})
}

func TestGate_interruptedRunUnlocks(t *testing.T) {
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
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(2, time.Minute)
				ctx, interrupt := context.WithCancel(t.Context())
				client := sitetest.NewClient(fake, func(cfg *machine.Config) {
					cfg.Limit = sitetest.UpTo(1)
					cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
						answer, err := fake.RoundTrip(r)
						if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/chassis" ||
							answer.StatusCode != http.StatusCreated {
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
				if _, err := client.Reach(ctx, fake.Nodes()[0].UUID, states.GoalAvailable, time.Hour); !api.IsInterrupted(err) {
					t.Fatalf("Reach = %v", err)
				}
				if left := lockRecords(fake); left != 0 { // the process ends here
					t.Errorf("%d lock records are left", left)
				}
			})
		})
	}
}

func TestGate_withoutRightToLock(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*fakeironic.Rejection{
		ironictest.Fault(http.StatusForbidden, "Access was denied"),
		ironictest.Fault(http.StatusInternalServerError, sitetest.SystemOnly),
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := manageableFleet(9, 10*time.Minute)
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				if strings.HasPrefix(r.URL.Path, "/v1/chassis") || r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
					return refusal
				}
				return nil
			}
			client := sitetest.Run(fake, sitetest.UpTo(3))
			cleanAll(t, fake, client)
			if peak := fake.MaxBusy(atWork...); peak != 3 {
				t.Errorf("%d hosts were at work at once, want 3", peak)
			}
			if got := noticed(client, "applies to this run only"); got != 1 {
				t.Errorf("said %d times that the lock may not be written, want once", got)
			}
			if got := ironictest.Count(fake, http.MethodPost, "/v1/chassis"); got != 1 {
				t.Errorf("asked %d times for the lock, want once", got)
			}
		})
	}
}

// Runs of one project may not create chassis. Allocations that reserve nothing are their lock, so the limit holds over both runs.
func TestGate_runsOfOneProject(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(12, 10*time.Minute)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if strings.HasPrefix(r.URL.Path, "/v1/chassis") {
				return ironictest.Fault(http.StatusInternalServerError, sitetest.SystemOnly)
			}
			return nil
		}
		var wg sync.WaitGroup
		runs := []*sitetest.Client{sitetest.Run(fake, sitetest.UpTo(3)), sitetest.Run(fake, sitetest.UpTo(3))}
		for i, node := range fake.Nodes() {
			wg.Go(func() {
				if _, err := runs[i%2].Reach(t.Context(), node.UUID, states.GoalAvailable, time.Hour); err != nil {
					t.Error(err)
				}
				if all, err := runs[0].Ironic.ListAllocations(t.Context(), nil); err != nil || len(all) > 0 {
					t.Errorf("the list shows %v, %v", all, err)
				}
			})
		}
		wg.Wait()
		if peak := fake.MaxBusy(atWork...); peak != 3 {
			t.Errorf("%d hosts were at work at once, want 3", peak)
		}
		left, _ := ironictest.AsOther(t, fake, http.MethodGet, "allocations", nil)["allocations"].([]any)
		if notices := noticed(runs[0], "applies to this run only"); notices > 0 || len(left) > 0 ||
			ironictest.Count(fake, http.MethodPost, "/v1/chassis") != 2 {
			t.Errorf("%d notices, the records %v are left", notices, left)
		}
	})
}

// A record that another client has filled with something else holds nothing up for longer than the lease, and neither does a huge one.
func TestGate_rubbishInTheRecord(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]any{
		"other types": map[string]any{"holders": "x", "run": 5}, "two holders": map[string]any{"holders": map[string]any{"a": 1, "b": 2}},
		"a text as number": map[string]any{"holders": map[string]any{"a": "x"}}, "nothing": map[string]any{},
		"huge": map[string]any{"run": strings.Repeat("x", 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, began := manageableFleet(2, time.Minute), time.Now()
				ironictest.AsOther(t, fake, http.MethodPost, "chassis", map[string]any{"uuid": admissionLock, "extra": extra})
				cleanAll(t, fake, sitetest.Run(fake, sitetest.UpTo(2)))
				if took := time.Since(began); took > 5*time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// noticed counts the notices whose summary contains a text.
func noticed(client *sitetest.Client, text string) int {
	n := 0
	for _, notice := range client.Notices() {
		if strings.Contains(notice.Summary, text) {
			n++
		}
	}
	return n
}

func TestGate_countsHostsOfOthers(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(4, 10*time.Minute)
		hosts := fake.Nodes()
		fake.Set(hosts[0].UUID, "name", nil) // also one without a name
		for _, theirs := range hosts[:2] {
			fake.Set(theirs.UUID, "provision_state", "deploying")
		}
		client := sitetest.Run(fake, sitetest.UpTo(2))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		if _, err := client.Reach(ctx, hosts[2].UUID, states.GoalAvailable, time.Hour); ctx.Err() == nil {
			t.Fatalf("Reach = %v while others fill the limit", err)
		}
		fake.Set(hosts[0].UUID, "provision_state", "active")
		if _, err := client.Reach(t.Context(), hosts[2].UUID, states.GoalAvailable, time.Hour); err != nil {
			t.Errorf("Reach = %v though a slot is free", err)
		}
	})
}

func TestGate_hangingHostAgesOut(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(2, 10*time.Minute)
		hosts := fake.Nodes()
		fake.Set(hosts[0].UUID, "provision_state", "wait call-back")
		fake.Set(hosts[0].UUID, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
		fake.Set(hosts[0].UUID, "last_error", "DHCP is silent\nTraceback: …")
		client, start := sitetest.Run(fake, sitetest.UpTo(1)), time.Now()
		if _, err := client.Reach(t.Context(), hosts[1].UUID, states.GoalAvailable, time.Hour); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start) - 10*time.Minute; waited < 44*time.Minute || waited > 47*time.Minute {
			t.Errorf("the host that hangs blocked the slot for %s, want 45 minutes", waited)
		}
		want := fmt.Sprintf("Machine is stuck. Node %s (%s) has been in state \"wait call-back\" since %s, and does not count against "+
			"provisioning_limit any more. Check the machine and its console. Ironic's last_error: DHCP is silent", hosts[0].Name,
			hosts[0].UUID, start.UTC().Format(time.RFC3339))
		if got := notices(client, "is stuck"); !slices.Equal(got, []string{want}) {
			t.Errorf("said %q, want %q", got, want)
		}
	})
}

func TestGate_exemptHosts(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(20, 10*time.Minute)
		limit := sitetest.UpTo(1)
		limit.Exempt = []string{"fak*"}
		if took := cleanAll(t, fake, sitetest.Run(fake, limit)); took > 11*time.Minute {
			t.Errorf("took %s, want all at once", took)
		}
	})
}

func TestGate_failedHostWaitsBehindFresh(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(4, 10*time.Minute)
		hosts := fake.Nodes()
		bad, other, mended := hosts[0].UUID, hosts[3].UUID, false
		fake.Fail = func(node fakeironic.Node, verb string) string {
			if node.UUID == bad && verb == "provide" && !mended {
				return "disk on fire"
			}
			return ""
		}
		if _, err := sitetest.Run(fake, sitetest.UpTo(1)).Reach(t.Context(), bad, states.GoalAvailable, time.Hour); err == nil {
			t.Fatal("cleaning did not fail")
		}
		mended = true
		fake.Set(other, "provision_state", "deploying") // another run has the slot, so that all three have to wait
		next := sitetest.Run(fake, sitetest.UpTo(1))
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, id := range []string{bad, hosts[1].UUID, hosts[2].UUID} {
			wg.Go(func() {
				if _, err := next.Reach(t.Context(), id, states.GoalAvailable, time.Hour); err != nil {
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
		node, _ := fake.Node(bad)
		if node.Raw["extra"].(map[string]any)["terraform_metal_failures"] != nil {
			t.Error("failures are not forgotten after a success")
		}
	})
}

func TestGate_lowerLimitOfIronic(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.82", "1.115"} { // 500 and 503
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := &fakeironic.Server{MaxMicroversion: version, MaxConcurrentClean: 1, StepTime: 0}
				fake.AddFleet(4, "baremetal")
				for _, node := range fake.Nodes() {
					fake.Set(node.UUID, "provision_state", "active")
					fake.Set(node.UUID, "instance_uuid", node.UUID)
				}
				fake.StepTime = 5 * time.Minute
				client := sitetest.Run(fake, sitetest.UpTo(4))
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

func TestGate_noticeOfUnusedSlots(t *testing.T) {
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
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(tc.hosts, 10*time.Minute)
				client := sitetest.Run(fake, sitetest.UpTo(20))
				parallelism := make(chan struct{}, tc.parallelism) // Terraform's
				said := 0
				var mu sync.Mutex
				var wg sync.WaitGroup
				for i, node := range fake.Nodes() {
					wg.Go(func() {
						<-time.After(time.Duration(min(i, tc.parallelism)) * tc.stagger)
						parallelism <- struct{}{}
						defer func() { <-parallelism }()
						if _, err := client.Reach(t.Context(), node.UUID, states.GoalAvailable, time.Hour); err != nil {
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

func TestGate_noNoticeForFewHosts(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(5, 10*time.Minute)
		client := sitetest.Run(fake, sitetest.UpTo(20))
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

// remote is a run whose requests and answers take their time. It is killed while it holds the lock, when it sends its nth request
// under it: that request and all later ones never arrive. If n is negative, it is not killed.
type remote struct {
	fake *fakeironic.Server
	lag  func() time.Duration
	kill func() // ends its walks, as the end of a process does
	died *atomic.Int32

	mu    sync.Mutex
	holds bool // the lock
	n     int
}

// RoundTrip sends a request while the run lives.
func (m *remote) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := m.travel(r); err != nil {
		return nil, err
	}
	answer, err := m.arrive(r)
	if err != nil {
		return nil, err
	}
	if err := m.travel(r); err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

func (m *remote) travel(r *http.Request) error {
	if r.URL.Path == "/v1/" { // for which the client keeps a mutex locked, which stops virtual time
		return nil
	}
	select {
	case <-time.After(m.lag()):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

func (m *remote) arrive(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n == 0 {
		return nil, errors.New("killed")
	}
	if m.holds {
		if m.n--; m.n == 0 {
			m.died.Add(1)
			m.kill()
			return nil, errors.New("killed")
		}
	}
	answer, err := m.fake.RoundTrip(r)
	switch {
	case err != nil:
	case isLock(r) && answer.StatusCode == http.StatusCreated:
		m.holds = true
	case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/v1/chassis/"):
		m.holds = false
	}
	return answer, err
}

// TestGate_randomSites runs the whole limiter, several runs on one fake Ironic, through random sites with slow and lost answers, an Ironic
// that has a limit of its own, and runs that are stopped or killed under the lock, and checks that the limit holds and every machine that
// stays gets a slot.
func TestGate_randomSites(t *testing.T) {
	t.Parallel()
	const sites = 40
	var played, died, refused atomic.Int32
	t.Cleanup(func() {
		if played.Load() == sites && (died.Load() < 10 || refused.Load() < 10) {
			t.Errorf("%d runs were killed under the lock, and Ironic refused %d times: the sites are too tame", died.Load(), refused.Load())
		}
	})
	for seed := range uint64(sites) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			played.Add(1)
			ironictest.InVirtualTime(t, func(t *testing.T) {
				randomSite(t, rand.New(rand.NewPCG(seed, 3)), &died, &refused)
			}) //nolint:gosec // a test
		})
	}
}

// journeys are ways through work that takes a slot.
var journeys = []struct {
	from string
	to   states.Goal
}{{"manageable", states.GoalAvailable}, {"available", states.GoalDeployed}, {"active", states.GoalUndeployed}}

func randomSite(t *testing.T, r *rand.Rand, died, refused *atomic.Int32) {
	limit := 1 + r.IntN(5)
	fake := manageableFleet(5+r.IntN(15), time.Duration(1+r.IntN(10))*time.Minute)
	fake.MaxMicroversion = []string{"1.82", "1.115"}[r.IntN(2)]                          // which refuse by 500 and 503
	fake.MaxConcurrentDeploy, fake.MaxConcurrentClean = r.IntN(limit+1), r.IntN(limit+1) // zero: none
	var mu sync.Mutex
	fake.Reject = func(req *http.Request) *fakeironic.Rejection {
		mu.Lock()
		defer mu.Unlock()
		if req.Method != http.MethodGet && r.IntN(20) == 0 {
			return &fakeironic.Rejection{Drop: true, After: r.IntN(2) == 0}
		}
		return nil
	}
	lag := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		longest := 300
		if r.IntN(10) == 0 {
			longest = 6000
		}
		return time.Duration(r.IntN(longest)) * time.Millisecond
	}
	runs := make([]*sitetest.Client, 1+r.IntN(4))
	contexts := make([]context.Context, len(runs))
	for i := range runs {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		contexts[i] = ctx
		m := &remote{fake: fake, lag: lag, kill: cancel, died: died, n: -1}
		if i > 0 {
			switch r.IntN(3) {
			case 0:
				time.AfterFunc(time.Duration(r.IntN(1200))*time.Second, cancel)
			case 1:
				m.n = 1 + r.IntN(12)
			}
		}
		runs[i] = sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit, cfg.Transport = sitetest.UpTo(limit), m })
	}
	var wg sync.WaitGroup
	for i, node := range fake.Nodes() {
		mu.Lock()
		pause, journey := time.Duration(r.IntN(300))*time.Second, journeys[r.IntN(len(journeys))]
		mu.Unlock()
		fake.Set(node.UUID, "provision_state", journey.from)
		wg.Go(func() {
			<-time.After(pause)
			ctx := contexts[i%len(runs)]
			if _, err := runs[i%len(runs)].Reach(ctx, node.UUID, journey.to, 48*time.Hour); err != nil && ctx.Err() == nil {
				t.Errorf("host %s: %v", node.Name, err)
			}
		})
	}
	wg.Wait()
	if peak := fake.MaxBusy(atWork...); peak > limit {
		t.Errorf("%d hosts were at work at once, and the limit is %d", peak, limit)
	}
	for _, request := range fake.Requests() {
		if request.Method == http.MethodPut && request.Status >= http.StatusInternalServerError {
			refused.Add(1)
		}
	}
}

func TestGate_refusedRunFreesOthers(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{MaxConcurrentClean: 1, StepTime: time.Hour}
		fake.AddFleet(9, "baremetal")
		hosts := fake.Nodes()
		fake.Set(hosts[0].UUID, "provision_state", "cleaning") // by others: as many as Ironic cleans at once
		fake.Set(hosts[1].UUID, "provision_state", "active")
		instance := ironic.NewUUID()
		fake.Set(hosts[1].UUID, "instance_uuid", instance)
		var wg sync.WaitGroup
		wg.Go(func() {
			done, err := sitetest.Run(fake, sitetest.UpTo(9)).Undeploy(t.Context(), hosts[1].UUID, instance, "", 3*time.Hour)
			if err != nil || done.Node.ProvisionState != "available" {
				t.Errorf("%+v, %v", done, err)
			}
		})
		other := sitetest.Run(fake, sitetest.UpTo(9))
		for _, host := range hosts[2:] { // from time to time, while the first run is refused again and again
			<-time.After(time.Minute)
			start := time.Now()
			wg.Go(func() {
				if _, err := other.Reach(t.Context(), host.UUID, states.GoalDeployed, 3*time.Hour); err != nil {
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
func notices(client *sitetest.Client, text string) []string {
	var all []string
	for _, notice := range client.Notices() {
		if strings.Contains(notice.Summary, text) {
			all = append(all, notice.Summary+". "+notice.Detail)
		}
	}
	return all
}

func TestGate_noticeOfWaitedHosts(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(12, 10*time.Minute)
		hosts := fake.Nodes()
		fake.Set(hosts[11].UUID, "provision_state", "deploying") // by others, for an hour
		fake.Set(hosts[11].UUID, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
		client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = sitetest.UpTo(4) })
		var mu sync.Mutex
		var told []string
		wave := func(hosts []fakeironic.Node) []string {
			told = nil
			var wg sync.WaitGroup
			for _, host := range hosts {
				wg.Go(func() {
					if _, err := client.Reach(t.Context(), host.UUID, states.GoalAvailable, time.Hour); err != nil {
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
			t.Errorf("no machine waited, but the notice says %q", got)
		}
		fresh := append(slices.Clone(hosts[8:10]), hosts[:3]...)
		for _, host := range hosts[:3] {
			fake.Set(host.UUID, "provision_state", "manageable")
		}
		for _, next := range []struct {
			hosts  []fakeironic.Node
			waited int
		}{{hosts[3:8], 2}, {fresh, 4}} {
			want := fmt.Sprintf("Machines waited for a slot: %d so far. The longest wait for a slot of provisioning_limit was 10m0s. "+
				"max_concurrent is 4. Other runs and clients used up to 1 of these slots.", next.waited)
			if got := wave(next.hosts); len(got) != 1 || got[0] != want {
				t.Errorf("said %q, want once %q", got, want)
			}
		}
		if got := wave(hosts[10:11]); len(got) > 0 {
			t.Errorf("no other machine waited, but the notice says %q", got)
		}
	})
}

func TestGate_noticeIsSilentAboutOtherRunsThatUsedNoSlot(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(2, 10*time.Minute)
		client := sitetest.NewClient(fake, func(cfg *machine.Config) { cfg.Limit = sitetest.UpTo(1) })
		cleanAll(t, fake, client)
		const want = "Machines waited for a slot: 1 so far. The longest wait for a slot of provisioning_limit was 10m0s. " +
			"max_concurrent is 1."
		if got := notices(client, "waited"); len(got) != 1 || got[0] != want {
			t.Errorf("said %q, want %q", got, want)
		}
	})
}
