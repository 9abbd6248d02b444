package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// A CLI without write-only arguments would store the password of a rescue system: it is refused when it validates the configuration,
// by the name of the attribute.
func TestWriteOnly_rescuePasswordIsRefusedByOldCLIs(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	const kind, password = "metal_deployment", "hunter2-and-rescue"
	config := s.value(s.kind(kind), map[string]any{
		"node_id": "n1", "image": map[string]any{"url": "http://images.test/a", "checksum": strings.Repeat("a1", 32)},
		"rescue": map[string]any{"password_wo": password, "password_wo_version": 1},
	})
	for _, able := range []bool{true, false} {
		resp, err := s.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
			TypeName: kind, Config: s.dynamic(config), ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: able},
		})
		if err != nil {
			t.Fatal(err)
		}
		said := describe(resp.Diagnostics)
		if failed(resp.Diagnostics) == able || strings.Contains(said, password) || (!able && !strings.Contains(said, "password_wo")) {
			t.Errorf("with write-only arguments %t: %q", able, said)
		}
	}
}
