package operate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// process is a run of metal that can be killed: before one of its requests, or after Ironic has executed it.
type process struct {
	fake  *fakeironic.Server
	kill  int // the number of the request; 0: it lives
	after bool
	stop  context.CancelFunc

	mu   sync.Mutex
	sent []string // the methods
}

var errKilled = errors.New("the process was killed")

// RoundTrip sends a request unless the process is dead.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.sent = append(p.sent, r.Method)
	number := len(p.sent)
	p.mu.Unlock()
	if p.kill == 0 || number < p.kill {
		return p.fake.RoundTrip(r)
	}
	if number == p.kill && p.after {
		if resp, err := p.fake.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
			resp.Body.Close()
		}
	}
	p.stop()
	return nil, errKilled
}

// told are the statuses that a runner tells.
type told struct {
	mu  sync.Mutex
	all []string
}

func (t *told) tell(_ *ironic.Node, status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, status)
}

func (t *told) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.all, "\n")
}

// run runs an operation on the only machine of a fake in a process that is killed at a request, or lives. It returns the result, what was
// told, and the methods of its requests.
func run(t *testing.T, fake *fakeironic.Server, op operate.Operation, kill int, after bool) (operate.Result, string, []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := &process{fake: fake, kill: kill, after: after, stop: stop}
	site := machine.New(machine.Config{Config: api.Config{
		Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: p,
		PollInterval: ironictest.Poll,
	}, Limit: sitetest.UpTo(3)})
	node, err := site.Ironic.Node(ctx, "node-000")
	if err != nil {
		return operate.Result{Outcome: operate.Failed, Err: err}, "", p.sent
	}
	said := &told{}
	runner := &operate.Runner{Site: site, Parallel: 1, By: "eve@desk", Tell: said.tell}
	machines := []ironic.Node{*node}
	tasks := operate.Tasks(op, machines, operate.Look(ctx, site, machines))
	said.tell(node, tasks[0].Left)
	return runner.Run(ctx, op, tasks)[0], said.String(), p.sent
}

// lives are operations of several requests, with the state of the machine before them, what shows that they have done it, and what is left
// while they have not.
var lives = map[string]struct {
	op      func() operate.Operation
	prepare map[string]any
	begun   func(fake *fakeironic.Server, n fakeironic.Node) bool // the machine is neither as before nor as after
	done    func(fake *fakeironic.Server, n fakeironic.Node) bool
	left    string
}{
	"inspect": {
		op: func() operate.Operation { return operate.Inspect(nil) }, prepare: map[string]any{"provision_state": "available"},
		begun: func(_ *fakeironic.Server, n fakeironic.Node) bool { return n.Raw["provision_state"] != "available" },
		done: func(fake *fakeironic.Server, n fakeironic.Node) bool {
			return n.Raw["provision_state"] == "available" && n.Raw["inspection_finished_at"] != nil
		},
		left: "metal inspect of eve@desk, which began at",
	},
	"qualify": {
		op: func() operate.Operation { return operate.Qualify(nil, burnIn) }, prepare: map[string]any{"provision_state": "available"},
		begun: func(_ *fakeironic.Server, n fakeironic.Node) bool { return n.Raw["provision_state"] != "available" },
		done: func(fake *fakeironic.Server, n fakeironic.Node) bool {
			info, _ := n.Raw["driver_info"].(map[string]any)
			return n.Raw["provision_state"] == "available" && info["agent_burnin_cpu_timeout"] == nil && hasPassed(n)
		},
		left: "metal qualify of eve@desk, which began at",
	},
	"reboot": {
		op: func() operate.Operation {
			return operate.Power(machine.ActionSoftReboot)
		}, prepare: map[string]any{"provision_state": "active", "power_state": "power on"},
		begun: func(_ *fakeironic.Server, n fakeironic.Node) bool {
			return n.Raw["power_state"] == "power off" || n.Raw["target_power_state"] != nil
		},
		done: func(fake *fakeironic.Server, n fakeironic.Node) bool {
			return n.Raw["power_state"] == "power on" && n.Raw["target_power_state"] == nil
		},
		left: "metal power reboot --soft of eve@desk, which began at",
	},
	"retire": {
		op: func() operate.Operation { return operate.Retire("old") }, prepare: map[string]any{"provision_state": "available"},
		begun: func(_ *fakeironic.Server, n fakeironic.Node) bool {
			return n.Raw["provision_state"] == "manageable" && n.Raw["retired"] != true
		},
		done: func(fake *fakeironic.Server, n fakeironic.Node) bool {
			return n.Raw["provision_state"] == "manageable" && n.Raw["retired"] == true && n.Raw["retired_reason"] == "old"
		},
		left: "metal retire of eve@desk, which began at",
	},
	"media": {
		op: func() operate.Operation {
			return operate.Media(ironic.DeviceCDROM, "https://images.example.com/new.iso")
		},
		prepare: map[string]any{"provision_state": "manageable"},
		begun:   func(fake *fakeironic.Server, _ fakeironic.Node) bool { return fake.Drive("node-000") == "" },
		done: func(fake *fakeironic.Server, _ fakeironic.Node) bool {
			return fake.Drive("node-000") == "https://images.example.com/new.iso"
		},
		left: "metal virtual-media attach of eve@desk, which began at",
	},
}

// A command is killed before and after each of its requests. What it has left half done is noted, the next command names it and does the
// rest, and no note is left.
func TestKill_nextCommandDoesTheRest(t *testing.T) {
	t.Parallel()
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepared := func(t *testing.T) *fakeironic.Server {
				fake := &fakeironic.Server{}
				sitetest.AddBootable(t, fake, "node-000", sitetest.FromMedia)
				ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000/states/power", map[string]any{"target": "power on"})
				time.Sleep(time.Second)
				if err := sitetest.NewClient(fake).Ironic.AttachMedia(t.Context(), "node-000", ironic.DeviceCDROM,
					"https://images.example.com/old.iso"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				fake.StepTime = time.Minute
				for field, value := range life.prepare {
					fake.Set("node-000", field, value)
				}
				return fake
			}
			var requests []string
			ironictest.InVirtualTime(t, func(t *testing.T) {
				var result operate.Result
				fake := prepared(t)
				if result, _, requests = run(t, fake, life.op(), 0, false); result.Outcome != operate.Done {
					t.Fatalf("without a kill: %s, %v", result.Outcome, result.Err)
				}
				checkDone(t, fake, life.done)
			})
			named := 0
			for i, method := range requests {
				at := i + 1
				for _, after := range []bool{false, true} {
					if after && method == http.MethodGet {
						continue // as before the next request
					}
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake := prepared(t)
						run(t, fake, life.op(), at, after)
						left := ironictest.NodeOf(t, fake, "node-000")
						noted := fmt.Sprint(left.Raw["extra"]) != "map[]"
						if life.begun(fake, left) && !noted {
							t.Errorf("killed at request %d (after %t): half done without a note", at, after)
						}
						time.Sleep(time.Duration(at%7) * 20 * time.Second)
						unfinished := notes.UnfinishedOperation(nodeOf(t, fake), time.Now()) != nil
						result, text, _ := run(t, fake, life.op(), 0, false)
						if result.Outcome != operate.Done && result.Outcome != operate.Unchanged {
							t.Errorf("killed at request %d (after %t): then %s, %v", at, after, result.Outcome, result.Err)
						}
						if unfinished {
							named++
							if !strings.Contains(text, life.left) {
								t.Errorf("killed at request %d (after %t): the next command does not name it:\n%s", at, after, text)
							}
						}
						if result.Outcome == operate.Done {
							checkDone(t, fake, life.done)
						}
					})
				}
			}
			if named == 0 {
				t.Error("no kill has left anything half done: the test shows nothing")
			}
		})
	}
}

// nodeOf reads the only node of a fake.
func nodeOf(t *testing.T, fake *fakeironic.Server) *ironic.Node {
	t.Helper()
	node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// checkDone checks that an operation is done, and has left no note.
func checkDone(t *testing.T, fake *fakeironic.Server, done func(*fakeironic.Server, fakeironic.Node) bool) {
	t.Helper()
	node := ironictest.NodeOf(t, fake, "node-000")
	if !done(fake, node) {
		t.Errorf("the operation is not done: %v", node.Raw)
	}
	if extra, _ := node.Raw["extra"].(map[string]any); extra[notes.KeyOperation] != nil {
		t.Errorf("it has left a note: %v", extra)
	}
}
