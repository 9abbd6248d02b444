package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
)

// SelectionFlags are the flags that select machines.
type SelectionFlags struct {
	class, owner, name, file string
	states, allocations      []string
	all, once                bool
}

// Declare declares the flags of a command that follows the machines: what it selects must not depend on their states.
func (f *SelectionFlags) Declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.class, "resource-class", "", "only machines of this resource `class`")
	flags.StringVar(&f.owner, "owner", "", "only machines of this `owner`")
	flags.StringVar(&f.name, "name-regex", "", "only machines whose name matches this regular `expression`")
	flags.StringSliceVar(&f.allocations, "allocation", nil, "only the machine that this `allocation` (name or UUID) has reserved; repeat "+
		"it for several")
}

// DeclareForOnce declares the flags of a command that selects the machines once. It must be told to take all of them.
func (f *SelectionFlags) DeclareForOnce(cmd *cobra.Command) {
	f.Declare(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "provision-state", nil, "only machines in this provision `state`, such as active; repeat "+
		"it for several")
	flags.StringVar(&f.file, "file", "", "`file` with names or UUIDs of nodes, one a line; # begins a comment; - is standard input")
	flags.BoolVar(&f.all, "all", false, "all machines that you may see")
	f.once = true
}

// DeclareForList is DeclareForOnce for a command that lists the machines: without flags it takes all of them.
func (f *SelectionFlags) DeclareForList(cmd *cobra.Command) {
	f.DeclareForOnce(cmd)
	f.once = false
}

// DeclareForAllocations declares the flags of a command that lists allocations.
func (f *SelectionFlags) DeclareForAllocations(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.class, "resource-class", "", "only allocations of this resource `class`")
	flags.StringVar(&f.owner, "owner", "", "only allocations of this `owner`")
	flags.StringVar(&f.name, "name-regex", "", "only allocations whose name matches this regular `expression`")
}

// Selection returns what the arguments and the flags select.
func (f *SelectionFlags) Selection(cmd *cobra.Command, args []string) (selection.Selection, error) {
	s := selection.Selection{Class: f.class, Owner: f.owner, States: f.states, Allocations: f.allocations}
	var wrong []error
	if f.name != "" {
		var err error
		if s.Name, err = regexp.Compile(f.name); err != nil {
			wrong = append(wrong, fmt.Errorf("--name-regex is not a regular expression: %w", err))
		}
	}
	for _, state := range f.states {
		if !slices.Contains(states.All(), state) {
			wrong = append(wrong, fmt.Errorf("--provision-state is %q; it must be a provision state, such as active", state))
		}
	}
	wrong = append(wrong, f.empty(cmd)...)
	filters := !s.IsEmpty()
	s.Nodes = slices.Clone(args)
	if f.file != "" {
		named, err := ReadNames(cmd, f.file)
		if err == nil && len(named) == 0 {
			err = fmt.Errorf("--file %s names no node", f.file)
		}
		if err != nil {
			wrong = append(wrong, err)
		}
		s.Nodes = append(s.Nodes, named...)
	}
	switch {
	case slices.Contains(s.Nodes, ""):
		wrong = append(wrong, errors.New("the name of a node is empty"))
	case filters && len(s.Nodes) > 0:
		wrong = append(wrong, errors.New("name nodes, or select them with flags, but not both"))
	case f.all && !s.IsEmpty():
		wrong = append(wrong, errors.New("--all selects all machines, so nothing else can select some"))
	case f.once && !f.all && s.IsEmpty() && len(wrong) == 0:
		wrong = append(wrong, fmt.Errorf("%s needs the names or UUIDs of nodes, flags that select them, or --all", cmd.CommandPath()))
	}
	return s, errors.Join(wrong...)
}

// Machines reads the selected machines with some fields; nil: all. None is a failure.
func (s *Settings) Machines(
	ctx context.Context, client *ironic.Client, selected selection.Selection, fields []string,
) ([]ironic.Node, error) {
	machines, err := selected.List(ctx, client, fields)
	return machines, s.Listed("machine", len(machines), selected, err)
}

// Listed returns the failure of a list of a noun that has count members. None is a failure.
func (s *Settings) Listed(noun string, count int, selected selection.Selection, err error) error {
	switch {
	case selection.IsNotFound(err):
		return &Failure{Code: ExitNothing, Err: err}
	case err != nil:
		return s.Unread("the "+noun+"s", err)
	case count == 0:
		return &Failure{Code: ExitNothing, Err: fmt.Errorf("no %s of %s%s", noun, s.IronicName(), selected)}
	}
	return nil
}

// empty returns an error for each flag that is given without a value: an empty variable of a shell must not select more than its value
// would.
func (f *SelectionFlags) empty(cmd *cobra.Command) (wrong []error) {
	for _, one := range []struct {
		flag   string
		values []string
	}{
		{"resource-class", []string{f.class}},
		{"owner", []string{f.owner}},
		{"name-regex", []string{f.name}},
		{"file", []string{f.file}},
		{"provision-state", f.states},
		{"allocation", f.allocations},
	} {
		if set := cmd.Flags().Lookup(one.flag); set != nil && set.Changed && (len(one.values) == 0 || slices.Contains(one.values, "")) {
			wrong = append(wrong, fmt.Errorf("--%s is empty", one.flag))
		}
	}
	return wrong
}

// ReadNames reads the names in a file.
func ReadNames(cmd *cobra.Command, name string) (names []string, err error) {
	all, err := ReadFile(cmd, name)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	for line := range strings.Lines(string(all)) {
		text, _, _ := strings.Cut(line, "#")
		names = append(names, strings.Fields(text)...)
	}
	return names, nil
}
