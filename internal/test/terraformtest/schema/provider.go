// Package schema has the providers of a workspace and the kinds of their resources and data sources, with terraform_data of Terraform's own
// provider. It encodes values for providers and decodes theirs.
package schema

import (
	"context"
	"net/http"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Provider is a provider that workspaces use. Each walk over a configuration starts a server of its own, as a CLI starts a process.
type Provider struct {
	Name, Source string // such as metal and terraform-provider-metal/metal
	// Start starts a server in an environment, as from os.Environ, with a transport for its requests. Nil: those of the process.
	Start func(environ []string, over http.RoundTripper) Server

	once      sync.Once
	block     *Kind
	kinds     map[string]*Kind // by name; those of data sources begin with "data."
	functions map[string]*tfprotov6.Function
}

// Kind returns a kind by name; nil if there is none.
func (p *Provider) Kind(name string) *Kind {
	p.load()
	return p.kinds[name]
}

// Block returns the kind of the provider block.
func (p *Provider) Block() *Kind {
	p.load()
	return p.block
}

func (p *Provider) load() {
	p.once.Do(func() {
		server := p.Start(nil, nil)
		ctx := context.Background() //nolint:forbidigo // once a process
		defer server.Close(ctx)
		resp, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
		if err != nil {
			panic(err)
		}
		p.kinds, p.block, p.functions = map[string]*Kind{}, kindOf(p.Name, resp.Provider), resp.Functions
		for name, schema := range resp.ResourceSchemas {
			p.kinds[name] = kindOf(name, schema)
		}
		for name, schema := range resp.DataSourceSchemas {
			k := kindOf(name, schema)
			k.IsData = true
			p.kinds[DataPrefix+name] = k
		}
	})
}

// Providers are those of a workspace.
type Providers []*Provider

// Named returns the provider of a name; nil if there is none.
func (all Providers) Named(name string) *Provider {
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Kind returns a kind and its provider; nil if none has it.
func (all Providers) Kind(name string) (*Provider, *Kind) {
	for _, p := range all {
		if k := p.Kind(name); k != nil {
			return p, k
		}
	}
	return nil, nil
}

// Server is a provider in this process.
type Server interface {
	tfprotov6.ProviderServer
	Close(context.Context)
}
