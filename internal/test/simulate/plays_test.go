package simulate_test

import (
	"context"
	"maps"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// The kinds of names of what the provider and the program metal offer. Resources have no prefix.
const (
	listPrefix     = "list."
	actionPrefix   = "action."
	functionPrefix = "function."
	blockPrefix    = "provider"
	verbPrefix     = "verb "
)

// plays are the names of what has met a site: attributes that a configuration had or that were known in a state, verbs that Ironic has
// accepted from a run, functions, and commands of the program metal.
type plays struct {
	mu  sync.Mutex
	all map[string]bool
}

// add adds a name.
func (p *plays) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]bool{}
	}
	p.all[name] = true
}

// names returns all names so far.
func (p *plays) names() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.all)
}

// addValue adds the attributes of a configuration or a state that are neither null nor unknown. What is configured may be unknown, too.
func (p *plays) addValue(name string, value cty.Value, configured bool) {
	switch {
	case value.IsNull():
		return
	case !value.IsKnown():
		if configured {
			p.add(name)
		}
		return
	}
	p.add(name)
	switch of := value.Type(); {
	case of.IsObjectType():
		for attribute, below := range value.AsValueMap() {
			p.addValue(name+"."+attribute, below, configured)
		}
	case of.IsMapType() || of.IsListType() || of.IsSetType():
		for it := value.ElementIterator(); it.Next(); {
			if _, element := it.Element(); element.Type().IsObjectType() {
				p.addValue(name, element, configured)
			}
		}
	}
}

// offered returns the names of all that the provider and the program metal offer.
func offered() map[string]bool {
	all := map[string]bool{}
	for name, of := range schemas() {
		if name == blockName {
			name = blockPrefix
		}
		addAttributes(all, name, of.attributes)
	}
	resp, err := provider.NewServer("test").GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		panic(err)
	}
	for name := range resp.EphemeralResourceSchemas {
		all["ephemeral."+name] = true
	}
	for name := range resp.Functions {
		all[functionPrefix+name] = true
	}
	for _, verb := range verbs() {
		all[verbPrefix+verb] = true
	}
	addCommands(all, metalCommand())
	return all
}

// addAttributes adds a resource and its attributes.
func addAttributes(to map[string]bool, name string, attributes []*tfprotov6.SchemaAttribute) {
	to[name] = true
	for _, a := range attributes {
		to[name+"."+a.Name] = true
		if a.NestedType != nil {
			addAttributes(to, name+"."+a.Name, a.NestedType.Attributes)
		}
	}
}

// addCommands adds the commands that do something.
func addCommands(to map[string]bool, command *cobra.Command) {
	for _, below := range command.Commands() {
		addCommands(to, below)
	}
	if command.Runnable() && !command.HasSubCommands() {
		to[command.CommandPath()] = true
	}
}
