package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

type object = map[string]any

// quoting is an Ironic that refuses each request that has a secret, quotes it, and tries to control the terminal.
func quoting() *fakeironic.Server {
	return &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("hunter2")) {
			return nil
		}
		var words strings.Builder
		encoder := json.NewEncoder(&words)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(map[string]any{"error_message": map[string]any{"faultstring": "\x1b[2J\u202eNo: " +
			strings.ReplaceAll(string(body), `\u0026`, "&")}})
		return &fakeironic.Rejection{Status: http.StatusBadRequest, Body: words.String()}
	}}
}

// What a user gives in a URL, and what is sensitive, never comes back in a message or in the log, although Ironic quotes it.
func TestMessages_haveNoSecrets(t *testing.T) {
	t.Parallel()
	const href = "https://robot:hunter2-robot@images.example.com/a.qcow2?X-Amz-Signature=hunter2-signature-of-a-url"
	s := startSessionOn(t, quoting(), nil)
	log := &strings.Builder{}
	s.logged = tflogtest.RootLogger(t.Context(), log)
	for name, try := range map[string]struct {
		kind   string
		config object
	}{
		"image": {"metal_deployment", object{"image": object{"url": href, "checksum": href}}},
		"kernel": {"metal_deployment", object{"image": object{
			"url": href, "checksum": href, "kernel": href, "ramdisk": href, "type": "partition", "root_gb": 10,
		}}},
		"live ISO":     {"metal_deployment", object{"live_iso": object{"url": href, "quiet_period": "0s"}}},
		"config drive": {"metal_deployment", object{"image": object{"url": href, "checksum": href}, "config_drive": object{"url": href}}},
		"user data": {"metal_deployment", object{"image": object{"url": href, "checksum": href}, "config_drive": object{
			"user_data_wo": "#cloud-config\npassword: \"hunter2\"", "user_data_wo_version": "1",
		}}},
		"meta data": {"metal_deployment", object{"image": object{"url": href, "checksum": href}, "config_drive": object{
			"meta_data_wo": `{"admin_pass":"hunter2-meta"}`, "meta_data_wo_version": "1",
		}}},
		"steps": {"metal_deployment", object{"image": object{"url": href, "checksum": href}, "deploy_steps": []any{
			object{"interface": "deploy", "step": "x", "priority": 80, "args": `{"admin_password":"hunter2-step","from":"` + href + `"}`},
		}}},
		"driver_info": {"metal_host", object{
			"name": "r2", "driver": "fake-hardware", "driver_info": object{"deploy_kernel": href, "snmp_token": "hunter2-token"},
			"driver_info_wo": object{"redfish_password": `hunter2"\`}, "driver_info_wo_version": "1",
		}},
		"bmc": {"metal_host", object{"name": "r3", "bmc": object{
			"address": "redfish://10.0.0.5/redfish/v1/Systems/1", "username": "root",
			"password_wo": "hunter2-bmc", "password_wo_version": "1",
		}}},
		"extra": {"metal_host", object{"name": "r4", "driver": "fake-hardware", "extra": object{"inventory": href}}},
	} {
		if try.kind == "metal_deployment" {
			host, said := s.apply("metal_host", object{
				"name": "for-" + strings.ReplaceAll(name, " ", "-"), "driver": "fake-hardware",
				"target_state": "available", "hardware_interfaces": object{"boot": "ipxe"},
			}, nil)
			if failed(said) {
				t.Fatal(describe(said))
			}
			try.config["node_id"] = s.text(host, "id")
		}
		_, said := s.apply(try.kind, try.config, nil)
		text := describe(said)
		if !failed(said) || !strings.Contains(text, "No: ") || strings.Contains(text, "hunter2") || strings.Contains(text, "robot") ||
			strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}

// The refusal of a provider setting does not contain the password in it.
func TestProviderBlock_refusalsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	s := &session{TB: t, server: provider.NewServer("test")}
	var err error
	if s.schemas, err = s.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, settings := range []object{
		{"endpoint": "https://admin:hunter2@ironic.example.com:6385"},
		{"endpoint": "https://admin:hunter2/x@ironic.example.com"},
		{"endpoint": "ironic://hunter2@x"},
		{"endpoint": "https://ironic.example.com", "inspector_endpoint": "https://admin:hunter2@inspector.example.com"},
		{"endpoint": "https://ironic.example.com", "auth_type": "keystone", "password": "hunter2"},
		{"endpoint": "https://ironic.example.com", "oneview": object{
			"endpoint": "https://admin:hunter2@oneview.example.com",
			"username": "u", "password": "hunter2-oneview",
		}},
	} {
		config := s.dynamic(s.value(s.schemas.Provider.ValueType(), settings))
		checked, err := s.server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		configured, err := s.server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		text := describe(append(checked.Diagnostics, configured.Diagnostics...))
		if text == "" || strings.Contains(text, "hunter2") {
			t.Errorf("%v: %q", settings, text)
		}
	}
}
