// Package sitetest has what the tests of the domain share: a machine.Site on a fake Ironic, and machines that are enrolled, deployed or
// booted. It is imported by tests only. Acceptance tests use internal/test/acctest/site.
package sitetest

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// NewClient returns a client of a fake Ironic in this process.
func NewClient(fake *fakeironic.Server, configure ...func(*machine.Config)) *Client {
	cfg := machine.Config{Config: api.Config{
		Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: fake,
		PollInterval: ironictest.Poll,
	}}
	for _, c := range configure {
		c(&cfg)
	}
	return NewSite(cfg)
}

// Setting is a patch that sets one attribute.
func Setting(path string, value any) ironic.Patch {
	var p ironic.Patch
	p.Set(path, value)
	return p
}

// Enrolled creates a node in state enroll and returns its UUID.
func Enrolled(t *testing.T, client *Client, name string) string {
	t.Helper()
	node, err := host.Enroll(t.Context(), client.Site, ironic.NewUUID(), ironic.Settings{
		"name": name, "driver": "fake-hardware",
		"resource_class": "baremetal",
	})
	if err != nil {
		t.Fatalf("enroll %s: %v", name, err)
	}
	return node.UUID
}
