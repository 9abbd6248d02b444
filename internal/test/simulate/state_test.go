package simulate_test

import (
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// configuration are the settings of resources by address, such as metal_host.a.
type configuration map[string]object

// instance is what Terraform keeps of a resource.
type instance struct {
	value    cty.Value
	private  []byte
	identity *tfprotov6.ResourceIdentityData
	tainted  bool
	after    []string // the addresses of the resources that it depends on

	upgraded *tfprotov6.DynamicValue // the value, as the provider upgrades it when it is read from a file; nil: it was not read yet
}

// states are the instances by address. They are not changed.
type states map[string]*instance

// workspace is a Terraform configuration with its state.
type workspace struct {
	site  *site
	name  string
	block object // the provider block

	mu      sync.Mutex
	now     states
	history []snapshot // older states
	runs    int
	killed  bool              // one of the runs was killed
	imports map[string]string // what the next apply imports: identifiers by address
	logs    bool              // the processes write logs, which are checked
	made    *plan             // that a run executes; nil: none runs
}

// snapshot is the state from a time on.
type snapshot struct {
	at time.Time
	states
}

func (s *site) workspace(name string, block object) *workspace {
	return &workspace{site: s, name: name, block: block, now: states{}, history: []snapshot{{time.Now(), states{}}}}
}

// state returns the present states.
func (w *workspace) state() states {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// set records an instance; nil removes it.
func (w *workspace) set(address string, i *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = maps.Clone(w.now)
	if w.now[address] = i; i == nil {
		delete(w.now, address)
	}
	w.history = append(w.history, snapshot{time.Now(), w.now})
}

// save writes the present state to the backend.
func (w *workspace) save() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = []snapshot{{states: w.now}}
}

// lose forgets the states of the last while of a run that was killed, which have not reached the backend.
func (w *workspace) lose(last time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.history) > 1 && time.Since(w.history[len(w.history)-1].at) < last {
		w.history = w.history[:len(w.history)-1]
	}
	w.now = w.history[len(w.history)-1].states
}

// text returns a string attribute of a resource; "" if it is null, or if there is no such resource.
func (w *workspace) text(address, attribute string) string {
	i := w.state()[address]
	if i == nil || i.value.GetAttr(attribute).IsNull() {
		return ""
	}
	return i.value.GetAttr(attribute).AsString()
}
