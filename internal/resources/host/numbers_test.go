package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Asset numbers and WWNs are integers that float64 rounds or writes with an exponent.
func TestFakeHost_numbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"
  extra = { asset = 20261127, wwn = 9007199254740993, long = 12345678901234567890, half = 0.5, in = [{ n = 1048577 }] }
  driver_info = { timeout = 1048576 }`))
	has := func(want string) {
		t.Helper()
		node, _ := s.Fake.Node(s.Name("h"))
		extra, err := json.Marshal(node.Raw["extra"])
		if err != nil || !strings.Contains(string(extra), want) {
			t.Errorf("Ironic has %s, want %s", extra, want)
		}
	}
	w.Must("apply", "-auto-approve")
	has(`"asset":20261127`)
	has(`"wwn":9007199254740993`)
	has(`"long":12345678901234567890`)
	has(`"in":[{"n":1048577}]`)
	acctest.NoChanges(t, w)
	if state := w.State(); !strings.Contains(state, "9007199254740993") || strings.Contains(state, "e+") {
		t.Errorf("the state is %s", state)
	}
	node, _ := s.Fake.Node(s.Name("h"))
	extra, _ := node.Raw["extra"].(map[string]any)
	extra["asset"], extra["wwn"] = json.Number("20261127.0"), json.Number("9007199254740995")
	s.Fake.Set(s.Name("h"), "extra", extra)
	output, _ := w.Plan()
	if strings.Contains(output, "20261127") && strings.Contains(output, "~ asset") ||
		!strings.Contains(output, "9007199254740995 -> 9007199254740993") {
		t.Errorf("another WWN is drift, and an equal number is none:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	has(`"wwn":9007199254740993`)
	w.Must("destroy", "-auto-approve")
}
