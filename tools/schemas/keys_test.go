package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// metal lint would report keys that are new, and miss those that are gone.
func TestKeys_lintKnowsThoseOfTheProviderAndTheModules(t *testing.T) {
	t.Parallel()
	found, err := keys(t.Context(), provider.NewServer("test"), "../../modules")
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../internal/operator/lint/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Compact(&got, file); err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Error("internal/operator/lint/schema.json is not what the schemas and the modules say: run make docs")
	}
	if len(found["resource"]) < 8 || len(found["module"]) < 3 || found["resource"]["metal_host"]["bmc"] == nil {
		t.Errorf("objects are missing: %s", want)
	}
}
