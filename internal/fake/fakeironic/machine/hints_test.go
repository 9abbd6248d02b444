package machine_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// The fake refuses the hints that Ironic's parser refuses, and no others.
func TestHintFault_isThatOfIronicsParser(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../../machine/disks/testdata/hints.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		verdict, text, _ := strings.Cut(line, " ")
		var hints map[string]any
		if verdict == "#" {
			continue
		}
		if err := json.Unmarshal([]byte(text), &hints); err != nil {
			t.Fatal(line, err)
		}
		if fault := machine.HintFault(hints); (fault == "") != (verdict == "accepted") {
			t.Errorf("%s: %q", strings.TrimSpace(line), fault)
		}
	}
}
