package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

func TestCopyOfAHostInStateHasNamesOfItsOwn(t *testing.T) {
	t.Parallel()
	configs, err := newHostConfigs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{node: "7d2ee2a9-22a8-4f3a-8a3a-0f6a3a8c7b11", port: "0c5b1f7e-9d0c-4c55-9a55-64e6c1a0f3d2", configs: configs}
	sampled, err := configs.fingerprint(sampleConfig)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := configs.fingerprint(strings.NewReplacer("bench-00000", "bench-00258", "52:54:00:00:00:00",
		"52:54:00:00:01:02").Replace(sampleConfig))
	if err != nil {
		t.Fatal(err)
	}
	if sampled == copied {
		t.Error("two configurations have the same fingerprint")
	}
	private, err := json.Marshal(map[string][]byte{"resource": []byte(`{"managed":["/ports/52:54:00:00:00:00"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	fields, err := s.copyInstance(map[string]any{
		"index_key": 0,
		"attributes": map[string]any{
			"id": s.node, "name": "bench-00000",
			"ports": map[string]any{"52:54:00:00:00:00": map[string]any{"id": s.port}},
		},
		"private": framework.Private(private).WithApplied(sampled),
	}, 258)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	privateOfCopy, err := json.Marshal(map[string][]byte{"resource": []byte(`{"managed":["/ports/52:54:00:00:01:02"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(map[string]any{
		"index_key": 258,
		"attributes": map[string]any{
			"id": "7d2ee2a9-22a8-4f3a-8a3a-000000000102", "name": "bench-00258",
			"ports": map[string]any{"52:54:00:00:01:02": map[string]any{"id": "0c5b1f7e-9d0c-4c55-9a55-000000000102"}},
		},
		"private": framework.Private(privateOfCopy).WithApplied(copied),
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(want) {
		t.Errorf("the copy is\n%s, want\n%s", text, want)
	}
}

func TestSampleWithAnotherConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	configs, err := newHostConfigs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{node: "7d2ee2a9-22a8-4f3a-8a3a-0f6a3a8c7b11", port: "0c5b1f7e-9d0c-4c55-9a55-64e6c1a0f3d2", configs: configs}
	if _, err := s.noteApplied(framework.Private(nil).WithApplied("another"), 1); err == nil {
		t.Error("a note of another configuration is copied")
	}
}
