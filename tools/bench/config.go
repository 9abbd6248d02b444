package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// fleetConfig returns a configuration with hosts. newFleet applies the first one and copies it.
func fleetConfig(hosts int) string {
	return fmt.Sprintf(`
resource "metal_host" "h" {
  count          = %d
  name           = format("bench-%%05d", count.index)
  driver         = "fake-hardware"
  resource_class = "bench"
  ports          = { format("52:54:00:00:%%02x:%%02x", floor(count.index / 256), count.index %% 256) = { pxe_enabled = true } }
  properties     = { cpus = "32", memory_mb = "131072", local_gb = "893", cpu_arch = "x86_64" }
  target_state   = "available"
  power_state    = "off"
}
`, hosts)
}

// sampleConfig is what fleetConfig configures for its first host.
const sampleConfig = `{
	"name": "bench-00000", "driver": "fake-hardware", "resource_class": "bench", "ports": {"52:54:00:00:00:00": {"pxe_enabled": true}},
	"properties": {"cpus": "32", "memory_mb": "131072", "local_gb": "893", "cpu_arch": "x86_64"}, "target_state": "available", "power_state": "off"
}`

// hostConfigs computes the fingerprints of configurations, as the provider notes them after an apply.
type hostConfigs struct {
	kind         tftypes.Type
	fingerprints framework.Fingerprints
}

// newHostConfigs asks the provider for the schema of metal_host.
func newHostConfigs(ctx context.Context) (*hostConfigs, error) {
	schemas, err := provider.NewServer("bench").GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	schema := schemas.ResourceSchemas["metal_host"]
	return &hostConfigs{schema.ValueType(), framework.NewFingerprints(schema)}, nil
}

// fingerprint returns the fingerprint of a host's configuration in JSON.
func (h *hostConfigs) fingerprint(config string) (string, error) {
	var given any
	if err := json.Unmarshal([]byte(config), &given); err != nil {
		return "", err
	}
	complete, errComplete := json.Marshal(withNulls(h.kind, given))
	text, errType := h.kind.MarshalJSON() //nolint:staticcheck // Terraform's own encoding of types
	kind, errKind := ctyjson.UnmarshalType(text)
	if err := errors.Join(errComplete, errType, errKind); err != nil {
		return "", err
	}
	value, err := ctyjson.Unmarshal(complete, kind)
	if err != nil {
		return "", err
	}
	encoded, err := ctymsgpack.Marshal(value, kind)
	if err != nil {
		return "", err
	}
	return h.fingerprints.Of(encoded), nil
}

// withNulls returns a value with null for each attribute that its objects lack.
func withNulls(kind tftypes.Type, value any) any {
	given, isObject := value.(map[string]any)
	if !isObject {
		return value
	}
	complete := map[string]any{}
	switch kind := kind.(type) {
	case tftypes.Object:
		for name, attribute := range kind.AttributeTypes {
			complete[name] = withNulls(attribute, given[name])
		}
	case tftypes.Map:
		for key, element := range given {
			complete[key] = withNulls(kind.ElementType, element)
		}
	}
	return complete
}
