package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// mostRequests is how many requests a refresh may take, however many hosts there are.
const mostRequests = 10

// manyHosts is a workspace with hosts, each with a port, that are in Ironic and in state.
func manyHosts(t *testing.T, hosts int) (*site.Site, *acctest.Workspace) {
	t.Helper()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+fmt.Sprintf(`
resource "metal_host" "h" {
  count        = %d
  name         = "host-${count.index}"
  driver       = "fake-hardware"
  target_state = "enroll"
  ports        = { format("52:54:00:00:%%02x:%%02x", floor(count.index / 256), count.index %% 256) = {} }
}
`, hosts))
	w.Must("apply", "-auto-approve", "-parallelism=50")
	return s, w
}

// refresh plans, and fails the test if that takes many requests or finds changes.
func refresh(t *testing.T, s *site.Site, w *acctest.Workspace, args ...string) {
	t.Helper()
	s.Fake.ResetRequests()
	output := w.Must(append([]string{"plan"}, args...)...)
	if !strings.Contains(output, "No changes.") {
		t.Errorf("the plan is not empty:\n%s", output[max(0, len(output)-2000):])
	}
	var asked strings.Builder
	requests := s.Fake.Requests()
	for _, r := range requests[:min(len(requests), 2*mostRequests)] {
		fmt.Fprintf(&asked, "\n%s %s %s?%s", r.Time.Format("05.000"), r.Method, r.Path, r.Query)
	}
	if len(requests) > mostRequests {
		t.Errorf("the refresh took %d requests, want at most %d; the first:%s", len(requests), mostRequests, asked.String())
	}
}

// The benchmark has a thousand hosts. With so many, the CLI itself takes minutes.
func TestFakeHost_refreshOfManyTakesAHandfulOfRequests(t *testing.T) {
	t.Parallel()
	s, w := manyHosts(t, 10*mostRequests)
	refresh(t, s, w)
	refresh(t, s, w, "-refresh-only")
}
