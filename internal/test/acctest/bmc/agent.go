package bmc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Agent is a machine that behaves like Ironic's ramdisk whenever it boots from the network: it looks itself up in Ironic, sends
// heartbeats, and answers that it has done what Ironic commands. Ironic needs that for most of its steps, also for those that
// it takes through the BMC. Where there is no node for it, it does nothing.
type Agent struct {
	*fakebmc.Simulated

	t        testing.TB
	endpoint string // of Ironic
	mac      string
	url      string // of its own API

	mu     sync.Mutex
	stop   context.CancelFunc // ends the ramdisk that runs
	result map[string]any     // of the last command
}

// NewAgent returns a machine for Start. Its node must have a port with this MAC address, and boot by iPXE.
func NewAgent(t testing.TB, s *site.Site, mac string) *Agent {
	t.Helper()
	a := &Agent{Simulated: &fakebmc.Simulated{}, t: t, endpoint: s.Endpoint, mac: mac, stop: func() {}}
	server := httptest.NewServer(http.HandlerFunc(a.serve))
	a.url = server.URL
	t.Cleanup(func() {
		a.halt()
		server.Close()
	})
	return a
}

// Connect implements fakebmc.Machine.
func (a *Agent) Connect(post func() fakebmc.Boot, off func()) {
	a.Simulated.Connect(func() fakebmc.Boot {
		boot := post()
		a.halt()
		if boot.Source == "Pxe" {
			a.boot()
		}
		return boot
	}, func() {
		a.halt()
		off()
	})
}

// boot starts the ramdisk.
func (a *Agent) boot() {
	ctx, stop := context.WithCancel(a.t.Context())
	a.mu.Lock()
	a.stop = stop
	a.mu.Unlock()
	go a.run(ctx)
}

// halt ends it.
func (a *Agent) halt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stop()
}

// run is the ramdisk, from its lookup to the end of its power.
func (a *Agent) run(ctx context.Context) {
	var found struct {
		Node   struct{ UUID string }
		Config struct {
			Token string `json:"agent_token"`
		}
	}
	for ; ; a.pause(ctx) {
		if ctx.Err() != nil {
			return
		}
		if found.Node.UUID == "" {
			// Ironic may not expect it yet
			_ = json.Unmarshal(a.call(ctx, http.MethodGet, "lookup?addresses="+url.QueryEscape(a.mac), nil), &found)
			continue
		}
		a.call(ctx, http.MethodPost, "heartbeat/"+found.Node.UUID, map[string]any{
			"callback_url": a.url, "agent_version": "9.0.0",
			"agent_token": found.Config.Token,
		})
	}
}

// pause waits between two requests.
func (a *Agent) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// call sends a request to Ironic, and returns the answer if the request succeeds.
func (a *Agent) call(ctx context.Context, method, path string, body any) []byte {
	content, _ := json.Marshal(body) // strings only
	req, err := http.NewRequestWithContext(ctx, method, a.endpoint+"/v1/"+path, bytes.NewReader(content))
	if err != nil {
		a.t.Error(err)
		return nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-OpenStack-Ironic-API-Version", "1.68")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil // Ironic is busy, or the machine has been switched off
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil || resp.StatusCode/100 != 2 {
		return nil
	}
	return answer.Bytes()
}

// serve is the API of the ramdisk: it succeeds in everything, and has no steps of its own.
func (a *Agent) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		commands := []map[string]any{}
		if a.result != nil {
			commands = append(commands, a.result)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"commands": commands}) // fails only if Ironic has gone
		return
	}
	var command struct {
		Name   string
		Params map[string]any
	}
	_ = json.NewDecoder(r.Body).Decode(&command) // Ironic sends valid JSON
	_, name, _ := strings.Cut(command.Name, ".")
	result := map[string]any{"hardware_manager_version": map[string]any{"generic_hardware_manager": "1.2"}}
	if kind, lists := strings.CutPrefix(name, "get_"); lists { // get_clean_steps, get_deploy_steps
		result[kind] = map[string]any{"GenericHardwareManager": []any{}}
	}
	a.result = map[string]any{
		"id": fmt.Sprint(time.Now().UnixNano()), "command_name": name, "command_params": command.Params,
		"command_status": "SUCCEEDED", "command_error": nil, "command_result": result,
	}
	_ = json.NewEncoder(w).Encode(a.result) // as above
}
