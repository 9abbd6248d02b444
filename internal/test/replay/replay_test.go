package replay_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/replay"
)

// The fake answers what acceptance tests have sent to an Ironic as that Ironic did, but for the known differences.
func TestReplay_theFakeAnswersAsIronicDid(t *testing.T) {
	t.Parallel()
	folder := os.Getenv(site.RecordVariable)
	if folder == "" {
		t.Skipf("%s names no folder with exchanges: make test-ironic records them", site.RecordVariable)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "reference", "fakes.md"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := replay.ReadKnown(string(page))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "TestAccBMC") })
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges in %s: %v", folder, err)
	}
	recordings := map[string][]site.Exchange{}
	newest, requests := "", 0
	for _, file := range files {
		all := read(t, file)
		recordings[file] = all
		requests += len(all)
		for _, e := range all {
			newest = cmp.Or(e.Newest, newest)
		}
	}
	differences := playAll(t, newest, recordings)
	ironic := map[string]string{"1.82": "21.4", "1.115": "39.0"}[newest]
	wrong, met := map[string]string{}, map[string]int{}
	for _, d := range differences {
		what := d.Request + " " + d.Place
		if slices.ContainsFunc(known, func(k replay.Known) bool { return k.Covers(d.Difference, ironic) }) {
			met[what]++
			continue
		}
		wrong[what] = fmt.Sprintf("%s\n  Ironic: %.1000s\n  fake:   %.1000s", d.Test, d.Real, d.Fake)
	}
	for _, what := range slices.Sorted(maps.Keys(wrong)) {
		t.Errorf("%s: %s", what, wrong[what])
	}
	t.Logf("Ironic %s: %d requests of %d sites, %d kinds of known differences", ironic, requests, len(files), len(met))
}

// kindOf returns what goes before the requests of the tests whose answers depend on more than the requests.
func kindOf(file string) string {
	if strings.HasPrefix(filepath.Base(file), "TestAccDiscover") {
		return "Discovery: "
	}
	return ""
}

// difference is one of a test.
type difference struct {
	replay.Difference

	Test string
}

// playAll sends the exchanges to fakes with a newest API, one for each site.
func playAll(t *testing.T, newest string, recordings map[string][]site.Exchange) (found []difference) {
	t.Helper()
	var mu sync.Mutex
	t.Run("sites", func(t *testing.T) {
		for file, all := range recordings {
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					fake := &fakeironic.Server{MaxMicroversion: newest, Discovery: true, SwitchPorts: newest != "1.82"}
					if strings.Contains(file, "Discover") {
						fake.DefaultResourceClass = "discovered"
					}
					differences := replay.Play(t.Context(), fake, all)
					mu.Lock()
					defer mu.Unlock()
					for _, d := range differences {
						d.Request = kindOf(file) + d.Request
						found = append(found, difference{d, filepath.Base(file)})
					}
				})
			})
		}
	})
	return found
}

// read reads a file of exchanges.
func read(t *testing.T, file string) (all []site.Exchange) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := json.NewDecoder(bufio.NewReader(f))
	for lines.More() {
		var e site.Exchange
		if err := lines.Decode(&e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, e)
	}
	return all
}
