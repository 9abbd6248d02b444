package simulate_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// hanging is a site whose Ironic accepts requests and never answers, as one that is stopped or whose database is locked.
type hanging struct {
	fake      *fakeironic.Server
	terraform *terraformtest.Workspace
	hangs     func(*http.Request) bool
	log       *lockedBuffer

	mu   sync.Mutex
	sent []time.Time // when requests were sent
}

// between is how many requests were sent between two moments.
func (h *hanging) between(from, to time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(h.sent), func(at time.Time) bool { return at.Before(from) || at.After(to) }))
}

func newHanging(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{fake: &fakeironic.Server{StepTime: time.Minute}, hangs: func(*http.Request) bool { return false }, log: newLockedBuffer()}
	transport := ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		h.mu.Lock()
		h.sent = append(h.sent, time.Now())
		h.mu.Unlock()
		if r.URL.Host == siteHost && h.hangs(r) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return h.fake.RoundTrip(r)
	})
	metal := &schema.Provider{Name: "metal", Source: provider.Address, Start: func([]string, http.RoundTripper) schema.Server {
		return provider.NewServerOver("test", transport)
	}}
	h.terraform = &terraformtest.Workspace{
		Dir: t.TempDir(), Providers: schema.Providers{metal, schema.Builtin},
		Variables: map[string]string{}, Environ: []string{},
	}
	return h
}

func (h *hanging) configure(t *testing.T, hosts int, settings string) {
	t.Helper()
	text := fmt.Sprintf("terraform {\n required_providers {\n metal = {\n source = \"terraform-provider-metal/metal\"\n }\n "+
		"}\n}\nprovider \"metal\" {\n endpoint = \"http://%s\"\n}\n"+
		"resource \"metal_host\" \"rack\" {\n count = %d\n name = \"rack-${count.index}\"\n driver = \"fake-hardware\"\n %s\n}\n", siteHost,
		hosts, settings)
	if err := os.WriteFile(filepath.Join(h.terraform.Dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *hanging) run(t *testing.T, args ...string) (output string, code int, took time.Duration) {
	t.Helper()
	began := time.Now()
	output, code, err := h.terraform.Run(tflogtest.RootLogger(t.Context(), h.log), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output, code, time.Since(began)
}

// told returns the lines of the log about requests without an answer.
func (h *hanging) told() string {
	return strings.Join(silenceLine.FindAllString(h.log.text.String(), -1), "\n")
}

var silenceLine = regexp.MustCompile(`"@message":"[^"]*no answer[^"]*"`)

// A plan, and the apply of a destruction, end for all resources when the first request has timed out twice; without a word of Terraform
// until then, so that the log must say what waits.
func TestHang_endsForAllResourcesAtOnce(t *testing.T) {
	t.Parallel()
	const hosts = 25 // more than Terraform works on at a time
	for name, hangs := range map[string]func(*http.Request) bool{
		"from the start":     func(*http.Request) bool { return true },
		"after it has begun": func(r *http.Request) bool { return r.URL.Path != "/v1/" },
	} {
		for _, command := range [][]string{{"plan"}, {"destroy", "-auto-approve", "-refresh=false"}} {
			t.Run(name+" "+command[0], func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					h := newHanging(t)
					h.configure(t, hosts, "")
					if output, code, _ := h.run(t, "apply", "-auto-approve"); code != 0 {
						t.Fatal(output)
					}
					h.hangs = hangs
					output, code, took := h.run(t, command...)
					longest := 2*time.Minute + 15*time.Second
					if command[0] == "destroy" {
						longest *= 2 // Terraform plans with a process of its own
					}
					if code != 1 || took < 2*time.Minute || took > longest || strings.Count(output, "Error: Could not ") != hosts {
						t.Errorf("code %d after %s, %d errors: %s", code, took, strings.Count(output, "Error: Could not "), output)
					}
					if !strings.Contains(output, "Is Ironic running there, and can this machine reach it?") ||
						!strings.Contains(h.told(), ": no answer for 30s; still waiting for it") {
						t.Errorf("the log: %s\nthe output: %s", h.told(), output)
					}
				})
			})
		}
	}
}

// An Ironic that hangs for ten minutes while a machine is cleaned costs nothing but time: the wait goes on, and the log tells it all the
// while.
func TestHang_waitGoesOn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		h := newHanging(t)
		h.configure(t, 3, `target_state = "available"`)
		begins, ends := time.Now().Add(90*time.Second), time.Now().Add(90*time.Second+10*time.Minute)
		h.hangs = func(*http.Request) bool { return time.Now().After(begins) && time.Now().Before(ends) }
		output, code, took := h.run(t, "apply", "-auto-approve")
		if code != 0 || took < 11*time.Minute || took > 14*time.Minute ||
			strings.Contains(strings.ReplaceAll(output, "Warning: New host is cleaned", ""), "Warning:") {
			t.Errorf("code %d after %s: %s", code, took, output)
		}
		if lines := strings.Count(h.told(), "\n") + 1; lines < 18 || lines > 60 {
			t.Errorf("%d lines in ten minutes:\n%s", lines, h.told())
		}
		if sent := h.between(begins, ends); sent > 30 {
			t.Errorf("%d requests to an Ironic that hangs", sent)
		}
	})
}

// If Ironic still hangs at the time-out of a creation, nothing is tainted, and the message says so.
func TestHang_unfinishedAtTheTimeOut(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		h := newHanging(t)
		h.configure(t, 1, "target_state = \"available\"\n timeouts = { create = \"20m\" }")
		begins := time.Now().Add(90 * time.Second)
		h.hangs = func(*http.Request) bool { return time.Now().After(begins) }
		output, code, took := h.run(t, "apply", "-auto-approve")
		if code != 0 || took < 20*time.Minute || took > 25*time.Minute ||
			!strings.Contains(output, "Warning: Unfinished: prepare node rack-0") {
			t.Errorf("code %d after %s: %s", code, took, output)
		}
	})
}
