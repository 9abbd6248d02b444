package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

func TestFakeDiscoveredNameFunction(t *testing.T) {
	t.Parallel()
	const refused = "(refused)"
	tests := []struct{ template, host, want string }{
		{`{ prefix = "string-literal1-", suffix = "-string-literal2", hardware_details = "hostname" }`, `{ hostname = "the-host-name" }`, "string-literal1-the-host-name-string-literal2"},
		{`{ hardware_details = "serial-number" }`, `{ serial_number = " SN1 ", hostname = null }`, "SN1"},
		{`{ hardware_details = "serial-number", style = "dns" }`, `{ serial_number = "SN1" }`, "sn1"},
		{`{ hardware_details = "boot-mac" }`, `{ boot_mac = "52:54:00:AA:BB:01" }`, "52-54-00-aa-bb-01"},
		{`{ hardware_details = "ip" }`, `{ ip = "192.0.2.7", boot_mac = "52:54:00:aa:bb:01" }`, "192-0-2-7"},
		{`{ hardware_details = "ip" }`, `{ ip = "2001:db8::1" }`, "2001-db8--1"},
		{`{ hardware_details = "provisioning-id", prefix = "m-" }`, `{ id = "6A0D3A2E-5b3c-4c9a-9a55-0c1f5e7d4b21" }`, "m-6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"},
		{`tomap({ hardware_details = "hostname" })`, `tomap({ hostname = "web" })`, "web"},
		{`{ hardware_details = "hostname" }`, `{ hostname = "localhost" }`, refused},
		{`{ hardware_details = "hostname" }`, `{}`, refused},
		{`{ hardware_details = "serial-number" }`, `{ serial_number = "A/B" }`, refused},
		{`{ hardware_details = "ip" }`, `{ ip = "fe80::1" }`, refused},
		{`{ hardware_details = "colour" }`, `{ hostname = "web" }`, refused},
		{`{}`, `{ hostname = "web" }`, refused},
	}
	s := acctest.StartFake(t, nil)
	var config strings.Builder
	config.WriteString(s.Provider())
	for n, tt := range tests {
		fmt.Fprintf(&config, "output \"name%d\" { value = try(provider::metal::discovered_name(%s, %s), %q) }\n", n, tt.template, tt.host, refused)
	}
	w := acctest.NewWorkspace(t, config.String())
	w.Must("apply", "-auto-approve")
	var outputs map[string]struct{ Value string }
	if err := json.Unmarshal([]byte(w.Must("output", "-json")), &outputs); err != nil {
		t.Fatal(err)
	}
	for n, tt := range tests {
		if got := outputs[fmt.Sprint("name", n)].Value; got != tt.want {
			t.Errorf("%s of %s is %q, want %q", tt.template, tt.host, got, tt.want)
		}
	}
	if requests := s.Fake.Requests(); len(requests) != 0 {
		t.Errorf("a function has sent %d requests", len(requests))
	}

	w.Configure(s.Provider() + `output "name" { value = provider::metal::discovered_name({ hardware_details = "serial-number" }, { serial_number = "A/B" }) }`)
	output, code := w.Run("plan")
	if code != 1 || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(output, "│", " ")), " "), `serial number "A/B" has characters that a name cannot have`) {
		t.Errorf("exit code %d\n%s", code, output)
	}
}
