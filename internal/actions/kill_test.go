package actions_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/actions"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// process is a provider that can be killed: before one of its requests, or after Ironic has executed it.
type process struct {
	fake  *fakeironic.Server
	kill  int // the number of the request; 0: it lives
	after bool

	stopAt string // the progress at which the user stops it; empty: none
	stop   context.CancelFunc

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

// value returns a value of Terraform.
func value(of tftypes.Type, from any) tftypes.Value {
	switch from := from.(type) {
	case []any:
		list, _ := of.(tftypes.List)
		var all []tftypes.Value
		for _, one := range from {
			all = append(all, value(list.ElementType, one))
		}
		return tftypes.NewValue(of, all)
	case map[string]any:
		object, _ := of.(tftypes.Object)
		all := map[string]tftypes.Value{}
		for name, kind := range object.AttributeTypes {
			all[name] = value(kind, from[name])
		}
		return tftypes.NewValue(of, all)
	}
	return tftypes.NewValue(of, from)
}

// said is what an action has said: its error, and its progress.
type said struct{ failed, told string }

// invoke invokes an action in a process.
func invoke(t *testing.T, p *process, which func() action.Action, settings map[string]any) said {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.stop = stop
	a := which()
	var shown action.SchemaResponse
	a.Schema(ctx, action.SchemaRequest{}, &shown)
	configurable, _ := a.(action.ActionWithConfigure)
	configurable.Configure(ctx, action.ConfigureRequest{ProviderData: framework.Clients{Site: machine.New(machine.Config{
		Config: api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: p, PollInterval: ironictest.Poll},
		Limit:  sitetest.UpTo(3),
	})}}, &action.ConfigureResponse{})
	var mu sync.Mutex
	var got said
	resp := action.InvokeResponse{SendProgress: func(event action.InvokeProgressEvent) {
		mu.Lock()
		defer mu.Unlock()
		got.told += event.Message + "\n"
		if p.stopAt != "" && strings.Contains(event.Message, p.stopAt) {
			stop()
		}
	}}
	a.Invoke(ctx, action.InvokeRequest{Config: tfsdk.Config{
		Schema: shown.Schema, Raw: value(shown.Schema.Type().TerraformType(ctx), settings),
	}}, &resp)
	mu.Lock()
	defer mu.Unlock()
	for _, d := range resp.Diagnostics.Errors() {
		got.failed += d.Summary() + ": " + d.Detail() + "\n"
	}
	return got
}

// harmless is a step that erases nothing.
var harmless = map[string]any{"steps": []any{map[string]any{"interface": "bios", "step": "factory_reset"}}}

// twins are the actions that are commands, too, with what the machine is before them.
var twins = map[string]struct {
	action   func() action.Action
	settings map[string]any
	before   map[string]any
	again    string // what may be sent again while Ironic goes on with what was killed; empty: nothing
	refused  string // why the action is refused while Ironic goes on, or after it has ended; empty: it is not
	several  bool   // it sends several requests, so that it is noted
}{
	"power on": {
		action: actions.NewPower, settings: map[string]any{"action": "on"}, before: map[string]any{"power_state": "power off"},
	},
	"power off":    {action: actions.NewPower, settings: map[string]any{"action": "off"}},
	"power reboot": {action: actions.NewPower, settings: map[string]any{"action": "reboot"}, again: "rebooting"},
	"soft off":     {action: actions.NewPower, settings: map[string]any{"action": "soft_off"}},
	"soft reboot": {
		action: actions.NewPower, settings: map[string]any{"action": "soft_reboot"}, before: map[string]any{"provision_state": "active"},
		several: true,
	},
	"inspect":             {action: actions.NewInspect, before: map[string]any{"provision_state": "available"}, several: true},
	"inspect, manageable": {action: actions.NewInspect, again: "inspect"},
	"clean":               {action: actions.NewClean, settings: harmless, refused: "an operation on it is in progress"},
	"service": {
		action: actions.NewService, settings: harmless, before: map[string]any{"provision_state": "active"},
		refused: "an operation on it is in progress",
	},
	"abort": {action: actions.NewAbort, before: map[string]any{"provision_state": "clean wait"}, refused: "there is none"},
	"unhold": {
		action: actions.NewUnhold, before: map[string]any{"provision_state": "clean hold", "target_provision_state": "manageable"},
		refused: "no step holds it",
	},
	"nmi": {action: actions.NewNMI},
	"attach": {
		action: actions.NewVirtualMedia, settings: map[string]any{"image_url": "https://images.example.com/new.iso"}, again: "vmedia",
		several: true,
	},
	"detach": {action: actions.NewVirtualMedia, again: "vmedia"},
}

// look is what there is of the machine, without times.
func look(t *testing.T, fake *fakeironic.Server) string {
	t.Helper()
	node := ironictest.NodeOf(t, fake, "node-000")
	extra, _ := node.Raw["extra"].(map[string]any)
	return fmt.Sprintf("%v, %v, target %v, inspected %t, medium %q, note %v", node.Raw["provision_state"], node.Raw["power_state"],
		node.Raw["target_power_state"], node.Raw["inspection_finished_at"] != nil, fake.Drive("node-000"), extra[notes.KeyOperation])
}

// record returns the machine as a client reads it.
func record(t *testing.T, fake *fakeironic.Server) *ironic.Node {
	t.Helper()
	node, err := sitetest.NewClient(fake).Ironic.Node(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// sent returns the requests that have moved the machine.
func sent(fake *fakeironic.Server) (all []string) {
	for _, r := range fake.Requests() {
		if (r.Method == http.MethodPut || strings.HasSuffix(r.Path, "/vmedia")) && strings.HasPrefix(r.Path, "/v1/nodes/") {
			all = append(all, r.Method+" "+r.Path[strings.LastIndex(r.Path, "/")+1:]+" "+r.Body)
		}
	}
	return all
}

// operable returns a fake with a machine in a state, which is on and has a medium.
func operable(t *testing.T, fields map[string]any) *fakeironic.Server {
	t.Helper()
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
	fake.Set("node-000", "provision_state", "manageable")
	for field, value := range fields {
		fake.Set("node-000", field, value)
	}
	fake.ResetRequests()
	return fake
}

// The provider is killed before and after each request of an action, and the user invokes the action again, sooner or later. The machine
// ends as without a kill, no note is left, and Ironic has got no verb twice that it had accepted and gone on with.
func TestKill_nextInvocationDoesTheRest(t *testing.T) {
	t.Parallel()
	for name, twin := range twins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]any{"node_id": "node-000"}
			maps.Copy(settings, twin.settings)
			var requests, calm []string
			want := ""
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := operable(t, twin.before)
				p := &process{fake: fake}
				if got := invoke(t, p, twin.action, settings); got.failed != "" {
					t.Fatalf("without a kill: %s", got.failed)
				}
				requests, calm, want = p.sent, sent(fake), look(t, fake)
			})
			named := 0
			for i, method := range requests {
				at := i + 1
				for _, after := range []bool{false, true} {
					if after && method == http.MethodGet {
						continue // as before the next request
					}
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake := operable(t, twin.before)
						invoke(t, &process{fake: fake, kill: at, after: after}, twin.action, settings)
						time.Sleep(time.Duration(at%7) * 20 * time.Second)
						then, node, begun := look(t, fake), record(t, fake), len(sent(fake)) > 0
						left := notes.UnfinishedOperation(node, time.Now()) != nil
						got := invoke(t, &process{fake: fake}, twin.action, settings)
						time.Sleep(time.Hour)
						where := fmt.Sprintf("killed at request %d (after %t), found as %s", at, after, then)
						if now := look(t, fake); now != want {
							t.Errorf("%s: it ends as %s, want %s", where, now, want)
						}
						if got.failed != "" && (!begun || twin.refused == "" || !strings.Contains(got.failed, twin.refused)) {
							t.Errorf("%s: %s", where, got.failed)
						}
						if left {
							named++
							if !strings.Contains(got.told, "is at work or was killed") {
								t.Errorf("%s: the next invocation does not name it:\n%s", where, got.told)
							}
						}
						goesOn := left || states.IsInProgress(node) || name == "inspect" && notes.OperationOf(node) != nil
						mayRepeat := func(request string) bool { return twin.again != "" && strings.Contains(request, twin.again) }
						if all := sent(fake); goesOn && !slices.Equal(slices.DeleteFunc(all, mayRepeat),
							slices.DeleteFunc(slices.Clone(calm), mayRepeat)) {
							t.Errorf("%s: it was sent %q, want %q", where, sent(fake), calm)
						}
					})
				}
			}
			if twin.several != (named > 0) {
				t.Errorf("%d kills have left the machine half done with a note", named)
			}
		})
	}
}

// A user stops an action while Ironic inspects the machine. The error says how the rest is done, and the next invocation does it and says
// what was done before.
func TestInvoke_saysWhatIsLeft(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, settings := operable(t, map[string]any{"provision_state": "available"}), map[string]any{"node_id": "node-000"}
		got := invoke(t, &process{fake: fake, stopAt: "cleaning"}, actions.NewInspect, settings)
		for _, want := range []string{
			"Could not inspect node node-000", "The run was interrupted. Ironic goes on with what was started",
			"It was to become available again. To do the rest, invoke the action again, or run: metal inspect node-000",
		} {
			if !strings.Contains(got.failed, want) {
				t.Errorf("it does not say %q: %s", want, got.failed)
			}
		}
		for _, want := range []string{"had inspected it already. To inspect it once more, do it again", ""} {
			got := invoke(t, &process{fake: fake}, actions.NewInspect, settings)
			if has := strings.Contains(got.told, "had inspected it already"); got.failed != "" || has != (want != "") ||
				!strings.Contains(got.told, want) {
				t.Errorf("%s, %s", got.failed, got.told)
			}
		}
		if verbs := sent(fake); len(verbs) != 6 {
			t.Errorf("the machine was inspected twice by %q", verbs)
		}
	})
}

// A user without the right to extra invokes actions, too, and reads that a kill would leave no note.
func TestInvoke_needsNoRightToItsNote(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := operable(t, map[string]any{"provision_state": "available"})
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method != http.MethodPatch {
				return nil
			}
			return ironictest.Fault(http.StatusForbidden, "Access was denied to the following resource: baremetal:node:update_extra")
		}
		got := invoke(t, &process{fake: fake}, actions.NewInspect, map[string]any{"node_id": "node-000"})
		if got.failed != "" || !strings.Contains(got.told, "it was not noted on the node") {
			t.Errorf("%s, %s", got.failed, got.told)
		}
	})
}
