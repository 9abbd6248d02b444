package turns_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// A database that is behind answers a run with lists from before another run has taken a member away. The run starts none of its own, and
// takes its note away.
func TestTake_listFromBeforeTheTurnOfAnotherRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		var before []byte // the list that is behind
		behind := 0       // how many lists are
		late := sitetest.NewClient(fake, func(cfg *machine.Config) {
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				resp, err := fake.RoundTrip(r)
				if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/nodes") {
					return resp, err
				}
				text, _ := io.ReadAll(resp.Body)
				if before == nil {
					before = text
				}
				if behind > 0 {
					behind, text = behind-1, before
				}
				resp.Body = io.NopCloser(bytes.NewReader(text))
				return resp, nil
			})
		})
		change := turns.Change{Settings: databases, Change: rollout.Restart}
		take := func(r *run, id string) *turns.Turn {
			m, err := r.Machine(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			turn, err := turns.Take(t.Context(), m, change)
			if err != nil {
				t.Error(err)
			}
			return turn
		}
		second := &run{Client: late}
		take(second, ids[1]).End(t.Context(), nil)
		first := take(newRun(fake), ids[0])
		begun, ended := time.Now(), make(chan struct{})
		go func() {
			time.Sleep(10 * time.Minute)
			if hasNote(t, fake, ids[1]) {
				t.Error("the member that waits has the note of one that is away")
			}
			first.End(t.Context(), nil)
			close(ended)
		}()
		behind = 2
		turn := take(second, ids[1])
		if waited := time.Since(begun); waited < 10*time.Minute {
			t.Errorf("two members are away after %s", waited)
		}
		<-ended
		turn.End(t.Context(), nil)
	})
}

// Two members have failed, which is more than may be away. Each of them is repaired all the same: its own note does not make it one more.
func TestTake_oneOfTwoMembersThatHaveFailed(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		for i, id := range active(fake) {
			note := notes.Turn{Group: "databases", Run: "dead", Instance: fake.Nodes()[i].InstanceUUID, Failed: true}
			fake.Set(id, "extra", map[string]any{notes.KeyTurn: note})
		}
		r := newRun(fake)
		m, err := r.Machine(t.Context(), fake.Nodes()[0].UUID)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		turn, err := turns.Take(ctx, m, turns.Change{Settings: databases, Change: rollout.Rebuild})
		if err != nil {
			t.Fatal(err)
		}
		turn.End(ctx, nil)
	})
}
