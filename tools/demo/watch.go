package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// pollInterval is how often the demo asks the fake Ironic for the states of its machines.
const pollInterval = 200 * time.Millisecond

// machines are the hosts of examples/demo, and limit is its max_concurrent.
var machines = []string{"node-1", "node-2", "node-3", "node-4", "node-5", "node-6"}

const limit = 2

// operations are the provision states in which a machine has an operation in progress that counts for the limit, each with the
// operation and its colour.
var operations = map[string]struct{ name, colour string }{
	"cleaning":       {"cleaning", blue},
	"clean wait":     {"cleaning", blue},
	"deploying":      {"deploying", magenta},
	"wait call-back": {"deploying", magenta},
	"deleting":       {"undeploying", red},
}

// watch runs the CLI, and prints a row with the states of all machines whenever one of them has changed.
func (w *workspace) watch(ctx context.Context, i *ironic, args ...string) error {
	out := w.out
	out.command(w.cli, args)
	header := "      "
	for _, name := range machines {
		header += fmt.Sprintf("%-12s", name)
	}
	out.print("   %s", out.paint(dim, header+"in progress"))
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx, showResult, args...) }()
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for last := ""; ; {
		if states, err := i.states(ctx); err == nil {
			if text := row(out, states); text != last {
				out.print("   %s  %s", out.paint(dim, out.elapsed()), text)
				last = text
			}
		}
		select {
		case err := <-ended:
			return err
		case <-ticks.C:
		}
	}
}

// watchFailure is watch for a run that fails because of diskError.
func (w *workspace) watchFailure(ctx context.Context, i *ironic, args ...string) error {
	err := w.watch(ctx, i, args...)
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeded, although a machine has failed", args[0])
	case ctx.Err() != nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), diskError):
		return err
	}
	return nil
}

// row is the line of the table for the states of the machines by name.
func row(out *screen, states map[string]string) string {
	var text strings.Builder
	busy := 0
	for _, name := range machines {
		shown, colour := states[name], dim
		if o, inProgress := operations[shown]; inProgress {
			shown, colour = o.name, o.colour
			busy++
		} else if shown == "active" {
			colour = green
		} else if shown == "deploy failed" {
			shown, colour = "failed", red
		}
		if shown == "" {
			shown = "-"
		}
		text.WriteString(out.paint(colour, fmt.Sprintf("%-12s", shown)))
	}
	fmt.Fprintf(&text, "%d of %d", busy, limit)
	return text.String()
}

// states asks for the provision states of all nodes, by name.
func (i *ironic) states(ctx context.Context) (map[string]string, error) {
	var list struct {
		Nodes []struct {
			Name  string `json:"name"`
			State string `json:"provision_state"`
		} `json:"nodes"`
	}
	if err := i.get(ctx, "/v1/nodes?fields=name,provision_state", &list); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, n := range list.Nodes {
		states[n.Name] = n.State
	}
	return states, nil
}

// left lists what is in Ironic.
func (i *ironic) left(ctx context.Context) ([]string, error) {
	var left []string
	for _, kind := range []string{"nodes", "ports", "allocations", "chassis"} {
		list := map[string][]map[string]any{}
		if err := i.get(ctx, "/v1/"+kind, &list); err != nil {
			return nil, err
		}
		for _, record := range list[kind] {
			if about, _ := record["description"].(string); strings.Contains(about, "identity of this Ironic") {
				continue // it stays for the states that know the site
			}
			left = append(left, fmt.Sprint(kind, " ", record))
		}
	}
	return left, nil
}

// get asks the fake Ironic.
func (i *ironic) get(ctx context.Context, path string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.url+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("X-OpenStack-Ironic-API-Version", "1.82")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
