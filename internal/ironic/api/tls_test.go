package api_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// file writes a file that lives as long as the test.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newTLSServer starts a server with TLS.
func newTLSServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of clients that do not trust it
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// authorityOf writes the certificate of a server to a file.
func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	return file(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func TestTLS_trust(t *testing.T) {
	t.Parallel()
	server := newTLSServer(t, fleet(1).ServeHTTP)
	authority := authorityOf(t, server)
	for name, tc := range map[string]struct {
		configure func(*api.Config)
		says      string // "" is success
	}{
		"its authority is given": {func(cfg *api.Config) { cfg.CACertFile = authority }, ""},
		"it is not verified":     {func(cfg *api.Config) { cfg.Insecure = true }, ""},
		"nothing is given":       {func(*api.Config) {}, "certificate signed by unknown authority"},
		"no such file":           {func(cfg *api.Config) { cfg.CACertFile = authority + ".old" }, "cacert_file: open "},
		"no certificate": {
			func(cfg *api.Config) { cfg.CACertFile = file(t, "empty.pem", "nothing") }, "empty.pem contains no PEM certificate",
		},
		"no client certificate": {
			func(cfg *api.Config) {
				cfg.CACertFile, cfg.ClientCertFile, cfg.ClientKeyFile = authority, authority+".crt", authority+".key"
			}, "client_cert_file and client_key_file: open ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := api.Config{Endpoint: server.URL, Auth: api.AuthNone}
			tc.configure(&cfg)
			_, err := ironic.New(cfg, ironic.Polls{}).Node(t.Context(), "node-000")
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("it connects")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}
