package guides_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// named matches what a table calls an attribute or a type of the provider, such as image.url.
var named = regexp.MustCompile("`([a-z][a-z0-9_]*(?:\\.[a-z0-9_]+)*)`")

// The last column of the tables for users of other tools names only types and attributes that the provider has.
func TestGuides_tablesNameWhatTheProviderHas(t *testing.T) {
	t.Parallel()
	known := providerNames(t)
	for _, guide := range []string{"from-metal3", "from-metalsmith", "from-maas"} {
		checked := 0
		for _, line := range strings.Split(read(t, root+"/templates/guides/"+guide+".md.tmpl"), "\n") {
			cells := strings.Split(line, "|")
			if len(cells) < 4 {
				continue
			}
			for _, match := range named.FindAllStringSubmatch(cells[len(cells)-2], -1) {
				if checked++; !known[match[1]] {
					t.Errorf("%s: %s is neither a type nor an attribute of the provider: %s", guide, match[1], line)
				}
			}
		}
		if checked < 15 {
			t.Errorf("%s: only %d names are in the last columns of tables", guide, checked)
		}
	}
}

// providerNames has the types of the provider, and the attributes of its provider block and of its resources, each by its path.
func providerNames(t *testing.T) map[string]bool {
	t.Helper()
	schemas, err := provider.NewServer("test").GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	addNames(known, "", schemas.Provider.Block.Attributes)
	for name, schema := range schemas.ResourceSchemas {
		known[name] = true
		addNames(known, "", schema.Block.Attributes)
	}
	for name := range schemas.ActionSchemas {
		known[name] = true
	}
	for name := range schemas.DataSourceSchemas {
		known[name] = true
	}
	for name := range schemas.Functions {
		known[name] = true
	}
	return known
}

func addNames(known map[string]bool, above string, attributes []*tfprotov6.SchemaAttribute) {
	for _, a := range attributes {
		known[above+a.Name] = true
		if a.NestedType != nil {
			addNames(known, above+a.Name+".", a.NestedType.Attributes)
		}
		if object, is := a.Type.(tftypes.Object); is {
			for name := range object.AttributeTypes {
				known[above+a.Name+"."+name] = true
			}
		}
	}
}
