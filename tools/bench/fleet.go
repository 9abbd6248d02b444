package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// fleet is a fake Ironic with many hosts, and a workspace that has them all in state.
type fleet struct {
	*workspace
	stop func()
}

// newFleet makes hosts. One is applied for real. The others are copies of it, in the fake and in the state file, with the notes that
// an apply of each would have left: a CLI would need many minutes to apply thousands of hosts, because it writes its whole state
// after each.
func (b *bench) newFleet(ctx context.Context, hosts int) (_ *fleet, err error) {
	fake := &fakeironic.Server{}
	endpoint, stop, err := serve(ctx, fake)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	b.say("make %d hosts", hosts)
	dir := filepath.Join(b.dir, fmt.Sprintf("fleet %d", hosts))
	w, err := newWorkspace(dir, b.cli, endpoint, fleetConfig(1))
	if err != nil {
		return nil, err
	}
	if _, err := w.run(ctx, b.provider, "apply", "-auto-approve"); err != nil {
		return nil, err
	}
	sample, err := takeSample(ctx, fake)
	if err != nil {
		return nil, err
	}
	if sample.configs, err = newHostConfigs(ctx); err != nil {
		return nil, err
	}
	for i := 1; i < hosts; i++ {
		if err := sample.enroll(ctx, fake, i); err != nil {
			return nil, fmt.Errorf("host %d: %w", i, err)
		}
	}
	if err := sample.copyState(filepath.Join(dir, "terraform.tfstate"), hosts); err != nil {
		return nil, err
	}
	if w, err = newWorkspace(dir, b.cli, endpoint, fleetConfig(hosts)); err != nil {
		return nil, err
	}
	return &fleet{w, stop}, nil
}

// sample is the host that the others are copies of: its UUIDs, the requests that made it, and what computes its note.
type sample struct {
	node, port string
	made       []fakeironic.Request
	configs    *hostConfigs
}

// takeSample reads from a fake how its only host was made.
func takeSample(ctx context.Context, fake *fakeironic.Server) (*sample, error) {
	requests := fake.Requests()
	var ports struct{ Ports []struct{ UUID string } }
	answer, err := send(ctx, fake, http.MethodGet, "/v1/ports", "")
	if err == nil {
		err = json.Unmarshal(answer, &ports)
	}
	if err != nil {
		return nil, err
	}
	if len(fake.Nodes()) != 1 || len(ports.Ports) != 1 {
		return nil, fmt.Errorf("one apply made %d nodes and %d ports", len(fake.Nodes()), len(ports.Ports))
	}
	s := &sample{node: fake.Nodes()[0].UUID, port: ports.Ports[0].UUID}
	for _, r := range requests {
		if r.Method != http.MethodGet && !strings.HasPrefix(r.Path, "/v1/chassis") {
			s.made = append(s.made, r)
		}
	}
	return s, nil
}

// rename replaces, in a text, the names of the sample by those of its nth copy.
func (s *sample) rename(text string, n int) string {
	return strings.NewReplacer(
		s.node, s.nodeOf(n), s.port, s.portOf(n),
		"bench-00000", fmt.Sprintf("bench-%05d", n),
		"52:54:00:00:00:00", fmt.Sprintf("52:54:00:00:%02x:%02x", n/256, n%256),
	).Replace(text)
}

func (s *sample) nodeOf(n int) string { return fmt.Sprintf("%s%012x", s.node[:24], n) }
func (s *sample) portOf(n int) string { return fmt.Sprintf("%s%012x", s.port[:24], n) }

// enroll makes the nth copy in a fake, with the requests that made the sample.
func (s *sample) enroll(ctx context.Context, fake *fakeironic.Server, n int) error {
	for _, r := range s.made {
		body := s.rename(r.Body, n)
		switch {
		case r.Method == http.MethodPost && r.Path == "/v1/nodes":
			body = withUUID(body, s.nodeOf(n))
		case r.Method == http.MethodPost && r.Path == "/v1/ports":
			body = withUUID(body, s.portOf(n))
		}
		if _, err := send(ctx, fake, r.Method, s.rename(r.Path, n)+"?"+r.Query, body); err != nil {
			return err
		}
	}
	return nil
}

// withUUID sets the UUID in the JSON of a new object.
func withUUID(body, uuid string) string {
	return fmt.Sprintf(`{"uuid":%q,%s`, uuid, strings.TrimPrefix(strings.TrimSpace(body), "{"))
}

// copyState adds copies to a state file that has the sample alone.
func (s *sample) copyState(path string, hosts int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var state map[string]any
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	resources, _ := state["resources"].([]any)
	if len(resources) != 1 {
		return fmt.Errorf("%s has %d resources, want the one that was applied", path, len(resources))
	}
	resource, _ := resources[0].(map[string]any)
	instances, _ := resource["instances"].([]any)
	if len(instances) != 1 {
		return fmt.Errorf("%s has %d hosts, want the one that was applied", path, len(instances))
	}
	for n := 1; n < hosts; n++ {
		instance, err := s.copyInstance(instances[0], n)
		if err != nil {
			return err
		}
		instances = append(instances, instance)
	}
	resource["instances"] = instances
	if text, err = json.Marshal(state); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// copyInstance makes the nth copy of the sample's entry in a state file.
func (s *sample) copyInstance(original any, n int) (map[string]any, error) {
	text, err := json.Marshal(original)
	if err != nil {
		return nil, err
	}
	var instance struct {
		Private []byte `json:"private"`
	}
	var fields map[string]any
	text = []byte(s.rename(string(text), n))
	if err := errors.Join(json.Unmarshal(text, &instance), json.Unmarshal(text, &fields)); err != nil {
		return nil, err
	}
	// The framework keeps private state as JSON: an object whose values are bytes.
	var private map[string][]byte
	if err := json.Unmarshal(instance.Private, &private); err != nil {
		return nil, fmt.Errorf("private state: %w", err)
	}
	for key, value := range private {
		private[key] = []byte(s.rename(string(value), n))
	}
	if instance.Private, err = json.Marshal(private); err != nil {
		return nil, err
	}
	if instance.Private, err = s.noteApplied(instance.Private, n); err != nil {
		return nil, err
	}
	fields["index_key"], fields["private"] = n, instance.Private
	return fields, nil
}

// noteApplied replaces, in private state, the note of the sample's configuration by that of its nth copy's.
func (s *sample) noteApplied(private framework.Private, n int) (framework.Private, error) {
	sampled, errSampled := s.configs.fingerprint(sampleConfig)
	copied, errCopied := s.configs.fingerprint(s.rename(sampleConfig, n))
	if err := errors.Join(errSampled, errCopied); err != nil {
		return nil, err
	}
	if sampled == "" || !bytes.Equal(private, private.WithApplied(sampled)) {
		return nil, errors.New("sampleConfig is not what was applied: the provider has noted another configuration")
	}
	return private.WithApplied(copied), nil
}

// send asks a fake, and returns its answer.
func send(ctx context.Context, fake *fakeironic.Server, method, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://fake"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-OpenStack-Ironic-API-Version", "latest")
	answer, err := fake.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(answer.Body); err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %s\n%s", method, path, answer.Status, content.String())
	}
	return content.Bytes(), nil
}
