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

// A failed deployment names the step that failed, or the last one that was seen.
func TestFailure_namesDeployStep(t *testing.T) {
	t.Parallel()
	for lastError, want := range map[string]string{
		"Deploy step deploy.write_image failed: no space left.": ", because deploy step " +
			"deploy.write_image failed: Deploy",
		"Agent returned error for deploy step {'interface': 'raid', 'step': 'apply', 'priority': 90}: X": ", because deploy step " +
			"raid.apply failed: Agent",
		"Asynchronous exception for deploy.deploy: X": ", because deploy step " +
			"deploy.deploy failed: Asynchronous",
		"Timeout reached while waiting for callback": "; the last deploy step seen " +
			"was deploy.deploy: Timeout",
	} {
		for _, version := range []string{"1.77", "1.82", ""} { // without a history, 21.4, 39
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.MaxMicroversion, fake.StepTime = version, time.Minute
				fake.Fail = func(fakeironic.Node, string) string { return lastError }
				id := fake.Nodes()[0].UUID
				client := sitetest.NewClient(fake)
				instanceID := ironic.NewUUID()
				if _, err := client.ReserveNode(t.Context(), id, instanceID); err != nil {
					t.Fatal(err)
				}
				_, _, err := client.Deploy(t.Context(), id, deploy.Deployment{}, deploy.DeployOptions{
					Instance: instanceID, Attempts: 1,
					Timeout: time.Hour,
				})
				if err == nil || !strings.Contains(err.Error(), `is in state "deploy failed"`+want) {
					t.Errorf("API %q: got %v, want %s", version, err, want)
				}
			})
		}
	}
}
