package deploy_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// checkRun is a run that checks a machine which answers after a time.
type checkRun struct {
	fake   *fakeironic.Server
	client *sitetest.Client
	log    *sitetest.Logbook
}

func newCheckRun(after time.Duration) *checkRun {
	r := &checkRun{fake: &fakeironic.Server{}, log: &sitetest.Logbook{}}
	r.fake.AddFleet(1, "baremetal")
	r.fake.Set("node-000", "provision_state", "active")
	begun := time.Now()
	r.client = sitetest.NewClient(r.fake, r.log.Record, func(cfg *machine.Config) {
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
			if time.Since(begun) < after {
				return nil, syscall.ECONNREFUSED
			}
			here, there := net.Pipe()
			return here, there.Close()
		}
	})
	return r
}

// check checks the machine for at most 5 minutes.
func (r *checkRun) check(ctx context.Context) error {
	_, err := r.client.Of(ctx, "node-000", func(m *machine.Machine) error {
		r.fake.ResetRequests()
		return deploy.AwaitReady(ctx, m, readiness.Check{TCP: "web-1:22", Timeout: 5 * time.Minute}, "Apply again.")
	})
	return err
}

// note returns the note on the node.
func (r *checkRun) note(t *testing.T) *notes.Checked {
	t.Helper()
	node, err := r.client.Ironic.Node(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	return notes.CheckOf(node, time.Now())
}

// failed returns the note on the node that a check has failed.
func (r *checkRun) failed(t *testing.T) *notes.Checked {
	t.Helper()
	node, err := r.client.Ironic.Node(t.Context(), "node-000")
	if err != nil {
		t.Fatal(err)
	}
	return notes.NotReadyOf(node)
}

// writes returns the requests since the beginning of the check.
func (r *checkRun) writes() (methods []string) {
	for _, request := range r.fake.Requests() {
		methods = append(methods, request.Method)
	}
	return methods
}

// A note is on the node while the check lasts, and the log says how it goes.
func TestAwaitReady_tellsOfTheCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newCheckRun(2 * time.Minute)
		done := make(chan error, 1)
		go func() { done <- r.check(t.Context()) }()
		<-time.After(time.Minute)
		if note := r.note(t); note == nil || note.Target != "TCP port web-1:22" || time.Since(note.Since) > 61*time.Second {
			t.Errorf("during the check, the note is %+v", note)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if note := r.note(t); note != nil {
			t.Errorf("after the check, the note is %+v", note)
		}
		if got := slices.DeleteFunc(r.writes(), func(method string) bool {
			return method == http.MethodGet
		}); !slices.Equal(got, []string{http.MethodPatch, http.MethodPatch}) {
			t.Errorf("the requests are %v, want two patches", got)
		}
		for _, text := range []string{
			"has a ready check: TCP port web-1:22, for at most 5m0s",
			"attempts, the last one: connection refused", "is ready after 2m",
		} {
			if len(r.log.Lines("level=INFO", "machine node-000", text)) == 0 {
				t.Errorf("the log does not say %q", text)
			}
		}
	})
}

// The note stays on the machine, which Ironic shows as active, until a check succeeds.
func TestAwaitReady_machineThatIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newCheckRun(7 * time.Minute)
		err := r.check(t.Context())
		if !failure.Is(err, failure.KindNotReady) || failure.IsInterrupted(err) {
			t.Errorf("the error is %v", err)
		}
		if late := failure.AboutOf[*readiness.Error](err, failure.KindNotReady); late == nil || late.Cause != readiness.Refused {
			t.Errorf("the error is about %+v", late)
		}
		if note := r.failed(t); r.note(t) != nil || note == nil || note.Target != "TCP port web-1:22" ||
			note.Failed.Sub(note.Since) != 5*time.Minute {
			t.Errorf("after the check, the note is %+v", note)
		}
		if got := slices.DeleteFunc(r.writes(), func(method string) bool {
			return method == http.MethodGet
		}); !slices.Equal(got, []string{http.MethodPatch, http.MethodPatch}) {
			t.Errorf("the requests are %v, want two patches", got)
		}
		if err := r.check(t.Context()); err != nil || r.note(t) != nil || r.failed(t) != nil {
			t.Errorf("after a check that has succeeded: %v, the note is %+v", err, r.failed(t))
		}
	})
}

// What Ironic says of the machine is the cause, with what starts it.
func TestAwaitReady_saysWhatIronicSays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		set    map[string]any // during the check
		says   []string
		noted  bool // that the check of a machine which is active has failed
		starts bool // the machine runs, as far as Ironic knows
	}{
		"runs": {
			nil, []string{"runs what was deployed on it, and is not ready", "connection refused", "The machine keeps running."}, true, true,
		},
		"off": {
			map[string]any{"power_state": "power off"},
			[]string{"because it is off: ", "metal power on node-000", `power_state = "on"`, "Apply again."},
			true, false,
		},
		"off, in maintenance": {
			map[string]any{"power_state": "power off", "maintenance": true, "maintenance_reason": "new fan"},
			[]string{"is off and in maintenance: new fan: ", "metal power on node-000"},
			true, false,
		},
		"rescue": {
			map[string]any{"provision_state": "rescue"},
			[]string{"is in rescue mode", "metal unrescue node-000", "Apply again."},
			false, false,
		},
		"undeployed": {
			map[string]any{"provision_state": "available", "instance_uuid": nil},
			[]string{`in state "available", and nothing is deployed on it any more`, "Find out who", "The next plan says"},
			false, false,
		},
		"undeploying": {
			map[string]any{"provision_state": "deleting"}, []string{`in state "deleting"`, "Find out who"}, false, false,
		},
		"error": {
			map[string]any{"provision_state": "error", "last_error": "no BMC"},
			[]string{`in state "error"`, "no BMC", "metal show node-000"},
			false, false,
		},
		"service failed": {
			map[string]any{"provision_state": "service failed", "last_error": "bad step"},
			[]string{"service failed", "bad step"},
			false, false,
		},
		"fault": {
			map[string]any{"maintenance": true, "fault": "power failure"},
			[]string{"has a fault (power failure)", "does not reach its BMC"},
			true, false,
		},
		"of others": {
			map[string]any{"instance_uuid": "11111111-1111-4111-8111-111111111111"},
			[]string{"is reserved by 11111111"},
			false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newCheckRun(time.Hour)
				r.fake.Set("node-000", "instance_uuid", "22222222-2222-4222-8222-222222222222")
				r.fake.Set("node-000", "power_state", "power on")
				time.AfterFunc(time.Minute, func() {
					for field, value := range tt.set {
						r.fake.Set("node-000", field, value)
					}
				})
				err := r.check(t.Context())
				_, detail := failure.Explain("make sure that it is ready", err)
				for _, says := range tt.says {
					if !strings.Contains(detail, says) {
						t.Errorf("the error does not say %q: %s", says, detail)
					}
				}
				if !failure.Is(err, failure.KindNotReady) || strings.Contains(detail, "keeps running") != tt.starts {
					t.Errorf("the error is: %s", detail)
				}
				if noted := r.failed(t) != nil; noted != tt.noted || r.note(t) != nil {
					t.Errorf("the node says that the check has failed: %t", noted)
				}
			})
		})
	}
}

func TestAwaitReady_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newCheckRun(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := r.check(ctx); !api.IsInterrupted(err) || failure.Is(err, failure.KindNotReady) {
			t.Errorf("the error is %v", err)
		}
		if r.note(t) != nil || r.failed(t) != nil {
			t.Error("after the interruption, the node has a note")
		}
	})
}

// While another client works on the node, Ironic refuses to remove the note: the check waits for that.
func TestAwaitReady_noteOfALockedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newCheckRun(time.Minute)
		time.AfterFunc(50*time.Second, func() { r.fake.Set("node-000", "reservation", "conductor-1") })
		time.AfterFunc(2*time.Minute, func() { r.fake.Set("node-000", "reservation", nil) })
		if err := r.check(t.Context()); err != nil {
			t.Error(err)
		}
		if note := r.note(t); note != nil {
			t.Errorf("after the check, the note is %+v", note)
		}
	})
}

// A check does not depend on the right to write the note, and replaces one that a killed run has left.
func TestAwaitReady_noteOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newCheckRun(0)
		left := notes.Checked{Since: time.Now().Add(-time.Minute), Target: "TCP port web-0:22"}
		if _, err := r.client.Ironic.PatchNode(t.Context(), "node-000", ironic.Patch{}.With("/extra/"+notes.KeyReady, left)); err != nil {
			t.Fatal(err)
		}
		if err := r.check(t.Context()); err != nil || r.note(t) != nil {
			t.Errorf("%v; the note is %+v", err, r.note(t))
		}
		r.fake.Reject = func(request *http.Request) *fakeironic.Rejection {
			if request.Method != http.MethodPatch {
				return nil
			}
			return &fakeironic.Rejection{
				Status: http.StatusForbidden,
				Body:   `{"error_message": "{\"faultstring\": \"Access was denied\"}"}`,
			}
		}
		if err := r.check(t.Context()); err != nil {
			t.Errorf("without the right to write the note: %v", err)
		}
	})
}
