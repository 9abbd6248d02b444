package main

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/observe"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// timed keeps what is written, each text with the time since the start.
type timed struct {
	mu    sync.Mutex
	began time.Time
	text  bytes.Buffer
}

func (w *timed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.WriteString(time.Since(w.began).Round(time.Second).String() + " ")
	return w.text.Write(p)
}

// An Ironic that accepts connections and never answers: each command says so after 30 seconds, and every 30 seconds, and ends with an
// error.
func TestHangingIronicIsTold(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"show", "rack1-01"}, {"power", "on", "rack1-01"}, {"watch"}, {"timeline", "rack1-01"}} {
		synctest.Test(t, func(t *testing.T) {
			s := &cli.Settings{Getenv: func(name string) string { return map[string]string{"METAL_ENDPOINT": "http://ironic.test"}[name] }}
			s.Ironic.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			root := cli.NewRoot(s, "")
			root.AddCommand(observe.Commands(s)...)
			root.AddCommand(operate.Commands(s)...)
			var out bytes.Buffer
			told := &timed{began: time.Now()}
			root.SetOut(&out)
			root.SetErr(told)
			root.SetArgs(args)
			err := root.ExecuteContext(t.Context())
			if took := time.Since(told.began); err == nil || took < 2*time.Minute || took > 2*time.Minute+15*time.Second {
				t.Errorf("%v: after %s: %v", args, took, err)
			}
			for _, line := range []string{
				"30s GET http://ironic.test/v1/: no answer for 30s; still waiting for it\n",
				"1m0s GET http://ironic.test/v1/: ", "1m31s GET http://ironic.test/v1/: no answer for 30s",
			} {
				if !strings.Contains(told.text.String(), line) {
					t.Errorf("%v: standard error lacks %q:\n%s", args, line, told.text.String())
				}
			}
		})
	}
}
