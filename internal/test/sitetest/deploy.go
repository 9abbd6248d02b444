package sitetest

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Debian is a deployment with an image of a version.
func Debian(version string) deploy.Deployment {
	return deploy.Deployment{
		Image: &deploy.Image{
			URL: "http://images/debian-" + version + ".qcow2", Checksum: "http://images/SUMS",
			Type: deploy.ImageWholeDisk,
		},
		ConfigDrive: map[string]any{"user_data": "#cloud-config", "meta_data": map[string]any{"name": "web"}},
	}
}

// Reserved is a fake with one node that is deployed through a ramdisk in three steps, and reserved by the returned instance.
func Reserved(t *testing.T, step time.Duration) (fake *fakeironic.Server, id, instance string) {
	t.Helper()
	fake = ironictest.Fleet(1)
	fake.StepTime = step
	fake.Set("node-000", "deploy_interface", "direct")
	id, instance = ironictest.NodeOf(t, fake, "node-000").UUID, ironic.NewUUID()
	if _, err := NewClient(fake).ReserveNode(t.Context(), id, instance); err != nil {
		t.Fatal(err)
	}
	fake.ResetRequests()
	return fake, id, instance
}

// OnceIn4h returns options of a deployment that is tried once, for at most four hours.
func OnceIn4h(instance string) deploy.DeployOptions {
	return deploy.DeployOptions{Instance: instance, Attempts: 1, Timeout: 4 * time.Hour}
}
