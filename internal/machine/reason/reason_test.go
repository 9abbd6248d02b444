package reason_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
)

// Every sample has the reason that it stands for, and no other row takes it.
func TestOf_samples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/samples.tsv")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		want, words, _ := strings.Cut(line, "\t")
		words = strings.ReplaceAll(words, `\n`, "\n")
		got := "wrapper"
		if found := reason.Of(words); found != nil {
			got = found.ID
		}
		if seen[got] = true; got != want {
			t.Errorf("%q has the reason %s, want %s", words, got, want)
		}
	}
	for _, r := range reason.All() {
		if !seen[r.ID] {
			t.Errorf("no sample has the reason %s", r.ID)
		}
	}
}

// The fake fails for each reason, in words that have it, with the frame of each of its operations and without one.
func TestOf_wordsOfTheFake(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../cmd/fakeironic/words.tsv")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		f := strings.SplitN(line, "\t", 3)
		if f[0] == "reason" {
			continue
		}
		known[f[0]] = true
		for _, frame := range []string{"", "Failed to prepare to deploy: ", "Failed to prepare node n for cleaning: "} {
			words := strings.NewReplacer(`\n`, "\n", "FRAME", frame, "IMAGE", "http://h/a", "TARGET", "power off").Replace(f[2])
			if found := reason.Of(words); found == nil || found.ID != f[0] {
				t.Errorf("%q has the reason %v, want %s", words, found, f[0])
			}
		}
	}
	for _, r := range reason.All() {
		if !known[r.ID] {
			t.Errorf("fakeironic does not fail for %s", r.ID)
		}
	}
}

// Each row fits into an error of Terraform at 80 columns: a line for the meaning, a line for the next step.
func TestAll_rowsAreShort(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, r := range reason.All() {
		if ids[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		ids[r.ID] = true
		switch r.Blame {
		case reason.Machine, reason.Request, reason.Site, reason.Unclear:
		default:
			t.Errorf("%s has the blame %q", r.ID, r.Blame)
		}
		of := map[reason.Blame][]reason.Shared{
			reason.Site:    {reason.Conductor, reason.Server, reason.Ramdisk, reason.Network, reason.Driver},
			reason.Request: {"", reason.Image, reason.Settings}, reason.Machine: {""}, reason.Unclear: {""},
		}
		if !slices.Contains(of[r.Blame], r.Shared) {
			t.Errorf("%s has the blame %q and speaks against %q", r.ID, r.Blame, r.Shared)
		}
		for _, text := range []string{r.Meaning, r.Next} {
			if len(text) > 76 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q has %d characters", r.ID, text, len(text))
			}
		}
		if r.Causes == "" || r.Look == "" {
			t.Errorf("%s has no causes, or no place to look", r.ID)
		}
	}
}

// A ramdisk that is not there is no fault of the image that was asked for.
func TestOfNode_namesWhatIsMissing(t *testing.T) {
	t.Parallel()
	const missing = "Failed to prepare to deploy: Validation of image href http://images.example.com/b/file failed, reason: " +
		"Got HTTP code 404 instead of 200 in response to HEAD request."
	for address, want := range map[string]string{
		"http://images.example.com/b/file": "ramdisk-404", "http://images.example.com/b/other": "image-404", "": "image-404",
	} {
		n := &ironic.Node{LastError: missing, DriverInfo: map[string]any{"deploy_kernel": address}}
		if found := reason.OfNode(n); found == nil || found.ID != want {
			t.Errorf("with the ramdisk %q: %v, want %s", address, found, want)
		}
	}
	n := &ironic.Node{MaintenanceReason: "During sync_power_state, max retries exceeded for node n, node state None"}
	if found := reason.OfNode(n); found == nil || found.ID != "power-sync" {
		t.Errorf("a node with an empty last_error: %v", found)
	}
	if found := reason.OfNode(&ironic.Node{LastError: "Deploy step deploy.frob failed: 42."}); found != nil {
		t.Errorf("an unknown text has the reason %s", found.ID)
	}
}
