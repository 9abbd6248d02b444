// Package bmc has the BMCs of acceptance tests, with Redfish and IPMI, machines behind them, and a server for the ISO images that they
// boot. Only tests import it.
package bmc

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Controller is a BMC at an address of its own.
type Controller struct {
	*fakebmc.BMC
	Server *fakebmc.Server
	URL    string // without a path
	CAFile string // for https; "" for http
	IPMI   string // host and port of StartIPMI

	t testing.TB
}

// Start starts a BMC for a test on 127.0.0.1. A real Ironic must run on the same machine. Its name is unique to the site. From
// the first call of Start on, which must come before its first request, a fake Ironic sends requests to the BMCs.
func Start(t testing.TB, s *site.Site, name string, config fakebmc.Config) *Controller {
	t.Helper()
	return StartAt(t, s, "127.0.0.1:0", name, config)
}

// StartAt is Start with an address to listen on. It skips the test if this machine does not have it.
func StartAt(t testing.TB, s *site.Site, address, name string, config fakebmc.Config) *Controller {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skip(err)
	}
	b := newController(t, s, name, config)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: b.Server, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	b.URL = server.URL
	return b
}

// StartSecure is Start with https and a CA of its own.
func StartSecure(t testing.TB, s *site.Site, name string, config fakebmc.Config) *Controller {
	t.Helper()
	b := newController(t, s, name, config)
	authority, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(b.Server)
	if server.TLS, err = authority.ServerConfig("127.0.0.1", "localhost"); err != nil {
		t.Fatal(err)
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust the CA are part of the test
	server.StartTLS()
	t.Cleanup(server.Close)
	b.URL, b.CAFile = server.URL, filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(b.CAFile, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func newController(t testing.TB, s *site.Site, name string, config fakebmc.Config) *Controller {
	config.Name = s.Name(name)
	server := &fakebmc.Server{}
	if s.Fake != nil && s.Fake.Fail == nil {
		s.Fake.Fail = driver
	}
	return &Controller{BMC: server.Add(config), Server: server, t: t}
}

// Address returns the BMC's address for metal_host, with redfish-virtualmedia or redfish as the scheme.
func (b *Controller) Address(scheme string) string {
	transport, host, _ := strings.Cut(b.URL, "://")
	return scheme + "+" + transport + "://" + host + b.Path()
}

// Block returns the HCL of the host's bmc, with the right password and further settings.
func (b *Controller) Block(settings ...string) string {
	return b.BlockOf("redfish-virtualmedia", settings...)
}

// BlockOf is Block with another scheme: see Address.
func (b *Controller) BlockOf(scheme string, settings ...string) string {
	username, password := b.Credentials()
	return Block(b.Address(scheme), append([]string{fmt.Sprintf("username = %q", username), fmt.Sprintf("password = %q", password)},
		settings...)...)
}

// Count returns how often a kind of events is in the history of the machine.
func (b *Controller) Count(kind fakebmc.Kind) int { return len(b.History(kind)) }

// Node returns the fields of a node, for AddNode, with this BMC and a boot interface: redfish-virtual-media or ipxe.
func (b *Controller) Node(boot string) map[string]any {
	username, password := b.Credentials()
	return map[string]any{"driver": "redfish", "boot_interface": boot, "automated_clean": false, "driver_info": map[string]any{
		"redfish_address": b.URL, "redfish_system_id": b.Path(), "redfish_username": username, "redfish_password": password,
	}}
}

// Block returns the HCL of a BMC with an address and further settings.
func Block(address string, settings ...string) string {
	return "bmc = {\n    address = " + strconv.Quote(address) + "\n    " + strings.Join(settings, "\n    ") + "\n  }"
}
