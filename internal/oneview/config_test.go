package oneview_test

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	good := func() oneview.Config {
		return oneview.Config{Endpoint: "https://oneview.example.com", Username: "ironic", Password: password}
	}
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		spoil func(*oneview.Config)
		word  string // a word of the error; empty: no error
	}{
		{"as it should be", func(*oneview.Config) {}, ""},
		{"with /rest", func(c *oneview.Config) { c.Endpoint += "/rest/" }, ""},
		{"no endpoint", func(c *oneview.Config) { c.Endpoint = "" }, "endpoint"},
		{"only a host", func(c *oneview.Config) { c.Endpoint = "oneview.example.com" }, "endpoint"},
		{"a password in the endpoint", func(c *oneview.Config) {
			c.Endpoint = "https://ironic:" + password + "@oneview.example.com"
		}, "endpoint"},
		{"no username", func(c *oneview.Config) { c.Username = "" }, "username"},
		{"no password", func(c *oneview.Config) { c.Password = "" }, "password"},
		{"an API that has no templates", func(c *oneview.Config) { c.APIVersion = 120 }, "api_version"},
		{"a CA file that is not there", func(c *oneview.Config) { c.CACertFile = "/nonexistent" }, "cacert_file"},
		{"a CA file without certificates", func(c *oneview.Config) { c.CACertFile = notPEM }, "cacert_file"},
		{"a CA without verification", func(c *oneview.Config) { c.CACertFile, c.Insecure = notPEM, true }, "insecure"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := good()
			tt.spoil(&cfg)
			_, err := oneview.New(cfg)
			if (err == nil) != (tt.word == "") || (err != nil && !strings.Contains(err.Error(), tt.word)) {
				t.Errorf("New: %v, want an error about %q", err, tt.word)
			}
			if err != nil {
				wantNoSecret(t, err)
			}
		})
	}
}

func TestUnknownConfigurationFailsOnFirstUse(t *testing.T) {
	t.Parallel()
	client, err := oneview.New(oneview.Config{Unknown: "oneview.endpoint"})
	if err != nil || client.Known() {
		t.Fatalf("New: %v, known %t", err, client.Known())
	}
	_, err = client.Hardware(t.Context(), "/rest/server-hardware/1")
	if !fault.Is(err, rest.KindUnknownConfig) {
		t.Errorf("err = %v, want KindUnknownConfig", err)
	}
	if err := client.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestClientTalksOnlyToTrustedAppliance(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{Username: "ironic", Password: password}
	fake.AddBlades(1)
	ours, url := serveTLS(t, fake)
	other, _ := serveTLS(t, &fakeoneview.Server{})
	for _, tt := range []struct {
		name   string
		ca     string
		lax    bool
		trusts bool
	}{
		{"its own authority", ours, false, true},
		{"another authority", other, false, false},
		{"the authorities of the system", "", false, false},
		{"without verification", "", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, err := oneview.New(oneview.Config{
				Endpoint: url, Username: "ironic", Password: password, CACertFile: tt.ca,
				Insecure: tt.lax,
			})
			if err != nil {
				t.Fatal(err)
			}
			found, err := client.ListHardware(t.Context(), oneview.HardwareFilter{})
			if tt.trusts {
				if err != nil || len(found) != 1 {
					t.Errorf("ListHardware = %d, %v", len(found), err)
				}
				return
			}
			wantWords(t, err, "certificate", "cacert_file")
		})
	}
}

// serveTLS serves a fake appliance on a local port, and returns the file of its authority and its URL.
func serveTLS(t *testing.T, fake *fakeoneview.Server) (caFile, url string) {
	t.Helper()
	authority, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	settings, err := authority.ServerConfig("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: fake, TLSConfig: settings, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "") // returns after Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return caFile, "https://" + listener.Addr().String()
}
