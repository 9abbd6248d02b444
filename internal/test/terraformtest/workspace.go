// Package terraformtest runs configurations as Terraform does, without a process of it: it reads HCL, speaks the provider protocol to
// providers in this process, checks their answers by the rules of Terraform's core, and keeps a state file that a CLI can go on with. Only
// tests use it. It does what the tests need, and refuses the rest with ErrUnsupported.
package terraformtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// Workspace is a directory with a configuration and a state file.
type Workspace struct {
	Dir       string
	Providers schema.Providers

	Variables map[string]string // of the environment: TF_VAR_NAME; those that no configuration declares do nothing
	Environ   []string          // of the providers, as from os.Environ; nil: that of the process

	mu    sync.Mutex
	plans map[string]*plan            // saved ones, by file
	data  map[state.Address]cty.Value // what data sources have returned in the last apply
}

func (w *Workspace) stateFile() string { return filepath.Join(w.Dir, "terraform.tfstate") }

// processKey is the key of the process of a command in its context.
type processKey struct{}

func processOf(ctx context.Context) *Process {
	p, _ := ctx.Value(processKey{}).(*Process)
	return p
}

// Check returns ErrUnsupported if only a CLI can run a command with the configuration as it is.
func (w *Workspace) Check(args ...string) error {
	if _, err := parse(args[1:]); err != nil {
		return err
	}
	_, err := language.Load(w.Dir, w.Providers, &language.Diagnostics{})
	return err
}

// RunIn is Run in a process, in which nothing else runs. Its exit code is -1 if the process was killed.
func (w *Workspace) RunIn(ctx context.Context, p *Process, args ...string) (output string, code int, err error) {
	ctx, end := p.lives(context.WithValue(ctx, processKey{}, p))
	defer end()
	output, code, err = w.Run(ctx, args...)
	if p.isDead() {
		code = -1
	}
	return output, code, err
}

// Run runs a command such as "plan", and returns what a CLI would print, and its exit code. The error is ErrUnsupported if only a CLI can
// do it. When the context ends, Run ends as a CLI does after Ctrl-C.
func (w *Workspace) Run(ctx context.Context, args ...string) (output string, code int, err error) {
	if len(args) == 0 {
		return "", 0, core.Unsupported("no command")
	}
	o, err := parse(args[1:])
	if err != nil {
		return "", 0, err
	}
	if o.json && args[0] != "show" && args[0] != "output" {
		return "", 0, core.Unsupported("-json")
	}
	c := command{w: w, ctx: ctx, o: o, out: &transcript{}, d: &language.Diagnostics{}}
	switch args[0] {
	case "validate":
		err = c.validate()
	case "plan":
		err = c.planCommand()
	case "destroy":
		c.o.destroy = true
		err = c.applyCommand()
	case "apply":
		err = c.applyCommand()
	case "import":
		err = c.importCommand()
	case "show":
		err = c.show()
	case "state":
		err = c.state()
	case "taint", "untaint":
		err = c.taint(args[0] == "taint")
	case "output":
		err = c.output()
	default:
		return "", 0, core.Unsupported("command %s", args[0])
	}
	if err != nil {
		return "", 0, err
	}
	if c.d.HasErrors() {
		c.code = 1
	}
	return c.out.text.String() + "\n" + c.d.Text(c.config), c.code, nil
}

// command is a command at work.
type command struct {
	w      *Workspace
	ctx    context.Context //nolint:containedctx // of the command
	o      options
	out    *transcript
	d      *language.Diagnostics
	config *language.Config
	code   int
}

func (c *command) validate() (err error) {
	if c.config, err = language.Load(c.w.Dir, c.w.Providers, c.d); err != nil || c.d.HasErrors() {
		return err
	}
	c.w.validate(c.ctx, c.config, c.o, c.d)
	if !c.d.HasErrors() {
		c.out.say("Success! The configuration is valid.")
	}
	return nil
}

// makePlan loads, validates and plans. The plan is nil if something has failed before.
func (c *command) makePlan() (p *plan, err error) {
	if c.config, err = language.Load(c.w.Dir, c.w.Providers, c.d); err != nil || c.d.HasErrors() {
		return nil, err
	}
	prior, err := state.Load(c.w.stateFile(), c.w.Providers)
	if err != nil {
		return nil, err
	}
	if len(c.o.args) > 0 {
		return nil, core.Unsupported("arguments %q", c.o.args)
	}
	for _, target := range c.o.targets {
		if strings.HasPrefix(target, "module.") && c.config.Resources[state.ParseAddress(target).Resource] == nil {
			return nil, core.Unsupported("target %s", target)
		}
	}
	variables := c.config.SetVariables(c.d, c.o.variables, c.w.Variables)
	if c.d.HasErrors() {
		return nil, nil
	}
	if c.w.validate(c.ctx, c.config, c.o, c.d); c.d.HasErrors() {
		return nil, nil
	}
	prior, movedFrom := move(prior, c.config.Moves)
	if len(movedFrom) > 0 && (len(c.o.targets) > 0 || c.o.refreshOnly) {
		return nil, core.Unsupported("moves with -target or -refresh-only")
	}
	p = c.w.plan(c.ctx, c.config, variables, c.o, c.d, c.out, prior)
	for at, one := range p.changes {
		one.movedFrom = movedFrom[at].String()
	}
	if p.failed {
		c.out.say("\nPlanning failed. Terraform encountered an error while generating this plan.")
	} else {
		c.out.say("%s", p.text())
	}
	return p, nil
}

func (c *command) planCommand() error {
	p, err := c.makePlan()
	if err != nil || p == nil || p.failed {
		return err
	}
	if c.o.detailedExit && !p.isEmpty() {
		c.code = 2
	}
	if c.o.out == "" {
		return nil
	}
	p.variables = p.config.WithoutEphemeral(p.variables)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.plans == nil {
		c.w.plans = map[string]*plan{}
	}
	file := language.Within(c.w.Dir, c.o.out)
	c.w.plans[file] = p
	return os.WriteFile(file, []byte("a plan of terraformtest\n"), 0o600)
}

// saved returns a saved plan; nil if there is none.
func (w *Workspace) saved(name string) *plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	file := language.Within(w.Dir, name)
	if content, err := os.ReadFile(file); err != nil || string(content) != "a plan of terraformtest\n" {
		return nil // removed, or a CLI has written another one
	}
	return w.plans[file]
}

func (c *command) applyCommand() error {
	var p *plan
	var err error
	if len(c.o.args) > 0 {
		if p, err = c.loadPlan(); err != nil || p == nil {
			return err
		}
	} else {
		if !c.o.approved {
			return core.Unsupported("an apply without -auto-approve")
		}
		if p, err = c.makePlan(); err != nil || p == nil || p.failed {
			return err
		}
	}
	now, data, done := c.w.apply(c.ctx, p, p.variables, c.d, c.out)
	if err := now.Save(c.w.stateFile(), c.w.Providers, data); err != nil {
		return err
	}
	c.w.mu.Lock()
	c.w.data = data
	c.w.mu.Unlock()
	if c.d.HasErrors() {
		return nil
	}
	switch imported := ""; {
	case p.options.destroy:
		c.out.say("\nDestroy complete! Resources: %d destroyed.", done.destroyed)
	default:
		if done.imported > 0 {
			imported = fmt.Sprintf("%d imported, ", done.imported)
		}
		c.out.say("\nApply complete! Resources: %s%d added, %d changed, %d destroyed.", imported, done.added, done.changed, done.destroyed)
	}
	return c.printOutputs(now)
}

// printOutputs prints the outputs after an apply.
func (c *command) printOutputs(now *state.State) error {
	if len(now.Outputs) > 0 {
		c.out.say("\nOutputs:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(now.Outputs)) {
		value, err := now.Outputs[name].Decode()
		if err != nil {
			return err
		}
		shown := "<sensitive>"
		if !now.Outputs[name].Sensitive {
			shown = outputText(value, "")
		}
		c.out.say("%s = %s", name, shown)
	}
	return nil
}

// loadPlan returns the saved plan that a command names; nil if it cannot be applied.
func (c *command) loadPlan() (*plan, error) {
	p := c.w.saved(c.o.args[0])
	if p == nil || len(c.o.args) > 1 {
		return nil, core.Unsupported("plan %s", c.o.args)
	}
	c.config = p.config
	now, err := state.Load(c.w.stateFile(), c.w.Providers)
	if err != nil {
		return nil, err
	}
	// A killed run leaves an empty file.
	if file, err := os.Stat(c.w.stateFile()); now.Serial != p.previous.Serial || err == nil && file.Size() > 0 &&
		now.Lineage != p.previous.Lineage {
		c.d.Fail("Saved plan is stale", "The given plan file can no longer be applied because the state was changed by another operation "+
			"after the plan was created.")
		return nil, nil
	}
	if names := p.config.EphemeralOf(); len(names) > 0 {
		variables := p.config.SetVariables(c.d, c.o.variables, c.w.Variables)
		if c.d.HasErrors() {
			return nil, nil
		}
		again := plan{
			workspace: p.workspace, config: p.config, options: p.options, variables: variables, started: p.started,
			previous: p.previous, refreshed: p.refreshed, data: p.data, expanded: p.expanded, outputs: p.outputs, changes: p.changes,
		}
		for name, value := range p.variables {
			again.variables[name] = value
		}
		return &again, nil
	}
	if len(c.o.variables) > 0 {
		c.d.Fail("Can't set variables when applying a saved plan", "Variables cannot be set with -var when applying a saved plan file.")
		return nil, nil
	}
	return p, nil
}

func (c *command) importCommand() (err error) {
	if len(c.o.args) != 2 {
		return core.Unsupported("import %q", c.o.args)
	}
	if c.config, err = language.Load(c.w.Dir, c.w.Providers, c.d); err != nil || c.d.HasErrors() {
		return err
	}
	prior, err := state.Load(c.w.stateFile(), c.w.Providers)
	if err != nil {
		return err
	}
	at := state.ParseAddress(c.o.args[0])
	block := c.config.Resources[at.Resource]
	if block == nil {
		c.d.Fail(fmt.Sprintf("resource address %q does not exist in the configuration.", at),
			"Before importing this resource, please create its configuration in the root module.")
		return nil
	}
	if prior.Get(at) != nil {
		c.d.Fail("Resource already managed by Terraform", "Terraform is already managing a remote object for %s. To import to this "+
			"address you must first remove the existing object from the state.", at)
		return nil
	}
	variables := c.config.SetVariables(c.d, c.o.variables, c.w.Variables)
	if c.d.HasErrors() {
		return nil
	}
	r := c.w.newRun(c.ctx, c.config, variables, c.o, c.d, c.out, prior, time.Now())
	defer r.close()
	if r.server(block.Provider) == nil {
		return nil
	}
	i, ok := r.importOne(at, block, c.o.args[1])
	if !ok {
		return nil
	}
	r.now.Set(at, i)
	c.out.say("\nImport successful!\n\nThe resources that were imported are shown above. These resources are now in\nyour Terraform " +
		"state and will henceforth be managed by Terraform.")
	return r.now.Save(c.w.stateFile(), c.w.Providers, nil)
}

// show prints the state or a saved plan.
func (c *command) show() error {
	switch {
	case len(c.o.args) > 1 || !c.o.json && len(c.o.args) == 0:
		return core.Unsupported("show %q", c.o.args)
	case len(c.o.args) == 0:
		s, err := state.Load(c.w.stateFile(), c.w.Providers)
		if err != nil {
			return err
		}
		c.w.mu.Lock()
		data := c.w.data
		c.w.mu.Unlock()
		text, err := stateJSON(s, data, c.w.Providers)
		c.out.say("%s", text)
		return err
	}
	p := c.w.saved(c.o.args[0])
	if p == nil {
		return core.Unsupported("a plan of a CLI")
	}
	if !c.o.json {
		c.out.say("%s", p.text())
		return nil
	}
	text, err := p.json()
	c.out.say("%s", text)
	return err
}

// output prints the outputs of the state as JSON, or one of them as JSON or HCL.
func (c *command) output() error {
	if len(c.o.args) > 1 || !c.o.json && len(c.o.args) == 0 {
		return core.Unsupported("output %q", c.o.args)
	}
	now, err := state.Load(c.w.stateFile(), c.w.Providers)
	if err != nil {
		return err
	}
	if len(c.o.args) == 0 {
		text, err := json.MarshalIndent(now.Outputs, "", "  ")
		c.out.say("%s", text)
		return err
	}
	one, exists := now.Outputs[c.o.args[0]]
	if !exists {
		c.d.Fail(fmt.Sprintf("Output %q not found", c.o.args[0]), "The output variable requested could not be found in the state file.")
		return nil
	}
	if !c.o.json {
		value, err := one.Decode()
		c.out.say("%s", outputText(value, ""))
		return err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, one.Value)
	c.out.say("%s", &compact)
	return err
}

// taint marks an instance as tainted, or not.
func (c *command) taint(is bool) error {
	now, err := state.Load(c.w.stateFile(), c.w.Providers)
	if err != nil {
		return err
	}
	if len(c.o.args) != 1 || now.Get(state.ParseAddress(c.o.args[0])) == nil {
		return core.Unsupported("taint or untaint of %q", c.o.args)
	}
	at := state.ParseAddress(c.o.args[0])
	now.Set(at, now.Get(at).Taint(is))
	done := "successfully untainted"
	if is {
		done = "marked as tainted"
	}
	c.out.say("Resource instance %s has been %s.", at, done)
	return now.Save(c.w.stateFile(), c.w.Providers, nil)
}

// state removes resources from the state.
func (c *command) state() error {
	if len(c.o.args) < 2 || c.o.args[0] != "rm" {
		return core.Unsupported("state %q", c.o.args)
	}
	now, err := state.Load(c.w.stateFile(), c.w.Providers)
	if err != nil {
		return err
	}
	for _, text := range c.o.args[1:] {
		at, removed := state.ParseAddress(text), 0
		for _, one := range now.Of(at.Resource) {
			if at.Key == "" || at.Key == one.Key {
				now.Set(one, nil)
				c.out.say("Removed %s", one)
				removed++
			}
		}
		if removed == 0 {
			c.d.Fail("Invalid target address", "No matching objects found. To view the available instances, use \"terraform state list\".")
			return nil
		}
	}
	return now.Save(c.w.stateFile(), c.w.Providers, nil)
}
