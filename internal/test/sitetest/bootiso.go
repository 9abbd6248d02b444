package sitetest

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Live is a deployment with a live ISO of a version, with a token in its URL.
func Live(version string) deploy.Deployment {
	want := bootiso.NewWant(bootiso.Artifacts{
		URL: "http://images/live-" + version + ".iso?token=hunter2", SharedContent: map[string]string{"infra_env": "uid/" + version},
	})
	return deploy.Deployment{LiveISO: &want}
}

// Drivers of nodes that can boot a live ISO: over the network, and from virtual media.
var (
	OverNetwork = map[string]any{
		"driver": "fake-hardware", "boot_interface": "ipxe",
		"driver_info": map[string]any{"deploy_kernel": "http://images/kernel", "deploy_ramdisk": "http://images/ramdisk"},
	}
	FromMedia = map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media",
		"driver_info": map[string]any{
			"redfish_address": "https://192.0.2.1", "deploy_kernel": "http://images/kernel",
			"deploy_ramdisk": "http://images/ramdisk",
		},
	}
)

// AddBootable adds an available node to a fake.
func AddBootable(t *testing.T, fake *fakeironic.Server, name string, driver map[string]any) string {
	t.Helper()
	body := map[string]any{"name": name, "resource_class": "baremetal"}
	maps.Copy(body, driver)
	id, _ := ironictest.AsOther(t, fake, http.MethodPost, "nodes", body)["uuid"].(string)
	ironictest.AsOther(t, fake, http.MethodPost, "ports", map[string]any{
		"node_uuid": id, "address": fmt.Sprintf("52:54:00:00:00:%02x", len(fake.Nodes())),
		"local_link_connection": map[string]any{"switch_id": "00:00:00:00:00:01", "port_id": name},
	})
	fake.Set(id, "power_state", "power off")
	fake.Set(id, "provision_state", "available")
	return id
}

// Booted is a fake with a node that has run the live ISO "1" for a while; each step of an operation takes 3 minutes.
func Booted(t *testing.T, api string, driver map[string]any) (fake *fakeironic.Server, id, instance string) {
	t.Helper()
	return BootedFor(t, api, driver, func(client *Client, id string) (string, error) {
		instance := ironic.NewUUID()
		_, err := client.ReserveNode(t.Context(), id, instance)
		return instance, err
	})
}

// BootedFor is Booted for a reservation that the caller makes.
func BootedFor(t *testing.T, api string, driver map[string]any,
	reserve func(client *Client, id string) (string, error),
) (fake *fakeironic.Server, id, instance string) {
	t.Helper()
	fake = &fakeironic.Server{MaxMicroversion: api}
	id = AddBootable(t, fake, "node-0", driver)
	client := NewClient(fake)
	instance, err := reserve(client, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.BootISO(t.Context(), id, Live("1"), deploy.DeployOptions{
		Instance: instance, Attempts: 1,
		Timeout: time.Hour,
	}); err != nil {
		t.Fatal(err)
	}
	<-time.After(48 * time.Hour)
	fake.StepTime = 3 * time.Minute
	fake.ResetRequests()
	return fake, id, instance
}

// Another returns the options to boot a node with another live ISO.
func Another(instance string) deploy.DeployOptions {
	return deploy.DeployOptions{Instance: instance, Other: deploy.RebuildOther, Attempts: 1, Timeout: 4 * time.Hour}
}
