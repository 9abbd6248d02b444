package machine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// consolePath is the end of the path of a request about a console.
const consolePath = "/states/console"

// consolePuts returns how many times the fake was asked to change a console.
func consolePuts(fake *fakeironic.Server) (puts int) {
	for _, r := range fake.Requests() {
		if r.Method == http.MethodPut && strings.HasSuffix(r.Path, consolePath) {
			puts++
		}
	}
	return puts
}

// A run that was killed has begun to enable the console, or another client changes the power: the node is locked until that ends.
func TestConsole_waitsForTheLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path string
		body map[string]any
		puts int
	}{
		"a killed run enables it": {consolePath, map[string]any{"enabled": true}, 0},
		"another client switches": {"/states/power", map[string]any{"target": "power on"}, 1},
	} {
		for _, late := range []bool{false, true} { // the record is older than the lock
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := ironictest.Fleet(1)
					fake.StepTime = 20 * time.Second
					id := fake.Nodes()[0].UUID
					client := sitetest.NewClient(fake)
					m, err := client.Machine(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					ironictest.AsOther(t, fake, http.MethodPut, "nodes/node-000"+tt.path, tt.body)
					if !late {
						if err := m.Refresh(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					fake.ResetRequests()
					if err := m.SetConsole(t.Context(), true, time.Hour); err != nil {
						t.Fatal(err)
					}
					if enabled := fake.Nodes()[0].Raw["console_enabled"]; enabled != true || !m.Node().ConsoleEnabled {
						t.Errorf("the console is enabled: %v", enabled)
					}
					if puts := consolePuts(fake); !late && puts != tt.puts {
						t.Errorf("%d requests, want %d", puts, tt.puts)
					}
				})
			})
		}
	}
}

// A lost answer does no harm: the request can be repeated.
func TestConsole_isSetAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for name, loss := range lateAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.StepTime = 20 * time.Second
				id := fake.Nodes()[0].UUID
				fake.Reject = ironictest.Once(http.MethodPut, "/v1/nodes/"+id+consolePath, loss)
				m, err := sitetest.NewClient(fake).Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.SetConsole(t.Context(), true, time.Hour); err != nil {
					t.Fatal(err)
				}
				if fake.Nodes()[0].Raw["console_enabled"] != true {
					t.Error("the console is not enabled")
				}
			})
		})
	}
}

// A run that is stopped waits no longer; the next run finds the console enabled.
func TestConsole_stops(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = time.Minute
		m, err := sitetest.NewClient(fake).Machine(t.Context(), fake.Nodes()[0].UUID)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if err := m.SetConsole(ctx, true, time.Hour); err == nil {
			t.Error("it has not stopped")
		}
		time.Sleep(2 * time.Minute)
		if err := m.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		fake.ResetRequests()
		if err := m.SetConsole(t.Context(), true, time.Hour); err != nil || consolePuts(fake) != 0 {
			t.Errorf("%v, %d requests", err, consolePuts(fake))
		}
	})
}
