package terraformtest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// action is what a plan does to an instance.
type action string

const (
	noOp    action = "no-op"
	create  action = "create"
	update  action = "update"
	replace action = "replace"
	remove  action = "delete"
	read    action = "read"
)

// change is the plan of an instance.
type change struct {
	at            state.Address
	kind          *schema.Kind
	action        action
	before        *state.Instance // as refreshed; nil if there is none
	planned       cty.Value
	private       []byte
	identity      *tfprotov6.ResourceIdentityData
	secrets       []cty.Path // sensitive values of the configuration
	mustReplace   []cty.Path
	importing     string // the ID
	movedFrom     string // the address before
	tainted, told bool   // told to be replaced by -replace
	isConfigured  bool
}

// plan is a plan of all resources, with what an apply needs.
type plan struct {
	workspace *Workspace
	config    *language.Config
	options   options
	variables map[string]cty.Value // without ephemeral ones
	started   time.Time
	previous  *state.State // before the refresh
	refreshed *state.State
	data      map[state.Address]cty.Value // what data sources have returned
	expanded  map[string]map[state.Address]cty.Value
	outputs   map[string]plannedOutput
	failed    bool

	mu      sync.Mutex
	changes map[state.Address]*change
}

type plannedOutput struct {
	before, after cty.Value // cty.NilVal: there is none
	sensitive     bool
}

func (p *plan) add(c *change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes[c.at] = c
}

// sorted returns the changes by address.
func (p *plan) sorted() []*change {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.changes), func(a, b *change) int { return state.Compare(a.at, b.at) })
}

// isEmpty reports whether the plan changes nothing.
func (p *plan) isEmpty() bool {
	if p.options.refreshOnly {
		return p.refreshed.SameAs(p.previous, p.workspace.Providers) && !p.changesOutputs()
	}
	for _, c := range p.sorted() {
		if c.action != noOp || c.importing != "" || c.movedFrom != "" {
			return false
		}
	}
	return !p.changesOutputs()
}

func (p *plan) changesOutputs() bool {
	for _, o := range p.outputs {
		if !o.same() {
			return true
		}
	}
	return false
}

func (o plannedOutput) same() bool {
	if o.before == cty.NilVal || o.after == cty.NilVal {
		return o.before == o.after
	}
	return o.before.RawEquals(o.after)
}
