package deploy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// Ironic 39 clears last_error when it cannot fetch a live ISO for virtual media; its history has the reason.
func TestHistory_explainsFailure(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{ImageFault: func(string) string {
			return "Got HTTP code 404 instead of 200 in response to HEAD request."
		}}
		id := sitetest.AddBootable(t, fake, "node-0", sitetest.FromMedia)
		client := sitetest.NewClient(fake)
		instance := ironic.NewUUID()
		if _, err := client.ReserveNode(t.Context(), id, instance); err != nil {
			t.Fatal(err)
		}
		_, _, err := client.BootISO(t.Context(), id, sitetest.Live("1"), deploy.DeployOptions{
			Instance: instance, Attempts: 1,
			Timeout: time.Hour,
		})
		if node, _ := fake.Node(id); node.LastError != "" {
			t.Fatalf("the fake says %q itself", node.LastError)
		}
		if err == nil || !strings.Contains(err.Error(), "Got HTTP code 404") {
			t.Errorf("got %v", err)
		}
	})
}
