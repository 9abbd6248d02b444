package guides_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A provider with lists changes nothing for a CLI that has none, and neither do files with list blocks. A CLI that has them runs the
// examples.
func TestAccLists_onEveryCLI(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+acctest.Host(s, 1))
	files := slices.DeleteFunc(glob(t, examples, "list-resources/*/*.tfquery.hcl"), func(file string) bool {
		needs := map[string]int{"metal_runbook": 92, "metal_inspection_rule": 96}[filepath.Base(filepath.Dir(file))]
		return s.Newest() < needs
	})
	for _, file := range files {
		write(t, filepath.Join(w.Dir, filepath.Base(filepath.Dir(file))+"-"+filepath.Base(file)),
			strings.ReplaceAll(read(t, file), "^rack1-", "^"+s.Name("h1")))
	}
	defer acctest.Destroy(t, s, w)
	acctest.NeverMention(t, w.Must("validate"), "Warning:")
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "1 added")
	acctest.NeverMention(t, strings.ReplaceAll(output, "Warning: New host is cleaned", ""), "Warning:")
	acctest.NoChanges(t, w)

	if !acctest.HasQuery(t) {
		var schemas struct {
			Providers map[string]map[string]json.RawMessage `json:"provider_schemas"`
		}
		if err := json.Unmarshal([]byte(w.Must("providers", "schema", "-json")), &schemas); err != nil {
			t.Fatal(err)
		}
		if len(schemas.Providers) == 0 {
			t.Error("no schemas")
		}
		for address, of := range schemas.Providers {
			if of["resource_schemas"] == nil || of["list_resource_schemas"] != nil {
				t.Errorf("the schema of %s has %v", address, of)
			}
		}
		return
	}
	acctest.Mention(t, w.Must("query"), "list.metal_host.rack1", s.Name("h1"))
}
