package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// completionTimeout is how long a shell waits for names at most.
const completionTimeout = 3 * time.Second

// CompleteNodes completes the names of nodes that the command line does not have yet.
func (s *Settings) CompleteNodes() cobra.CompletionFunc {
	return complete(s, nodesWith("name"), func(n *ironic.Node) string { return n.Name })
}

// nodesWith lists the nodes with a field.
func nodesWith(field string) func(context.Context, *ironic.Client) ([]ironic.Node, error) {
	return func(ctx context.Context, client *ironic.Client) ([]ironic.Node, error) {
		return client.ListNodeFields(ctx, ironic.NodeFilter{}, []string{"uuid", field})
	}
}

// completeOneNode is CompleteNodes for a command that takes one node.
func (s *Settings) completeOneNode() cobra.CompletionFunc {
	nodes := s.CompleteNodes()
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nodes(cmd, args, begun)
	}
}

func (s *Settings) completeClasses() cobra.CompletionFunc {
	return complete(s, nodesWith("resource_class"), func(n *ironic.Node) string { return n.ResourceClass })
}

func (s *Settings) completeAllocations() cobra.CompletionFunc {
	return complete(s, func(ctx context.Context, client *ironic.Client) ([]ironic.Allocation, error) {
		return client.ListAllocations(ctx, nil)
	}, func(a *ironic.Allocation) string { return a.Name })
}

func (s *Settings) completeRunbooks() cobra.CompletionFunc {
	return complete(s, func(ctx context.Context, client *ironic.Client) ([]ironic.Procedure, error) {
		return ironic.ListIn[ironic.Procedure](ctx, client, ironic.Runbooks)
	}, func(r *ironic.Procedure) string { return r.Name })
}

func completeStates(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return matching(states.All(), args, begun), cobra.ShellCompDirectiveNoFileComp
}

// complete returns a completion from the words of what Ironic lists. It says nothing if Ironic does not answer.
func complete[T any](
	s *Settings, list func(context.Context, *ironic.Client) ([]T, error), word func(*T) string,
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if s.CompleteIronic(cmd.Flags()) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		s.Ironic.Logger = s.Logger(cmd.ErrOrStderr(), false, false)
		s.Ironic.UserAgent = "metal/" + s.Version
		s.Ironic.APITimeout = 0
		all, err := list(ctx, ironic.New(s.Ironic.Config, ironic.Polls{}))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		words := make([]string, len(all))
		for i := range all {
			words[i] = word(&all[i])
		}
		return matching(words, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// matching returns the words, sorted and once each, that begin as a word of the command line does and that it does not have yet. The word
// may be a list with commas, of which the last part is completed. Spaces are escaped by the shell.
func matching(words, args []string, begun string) []string {
	done := begun[:strings.LastIndex(begun, ",")+1]
	taken := append(slices.Clone(args), strings.Split(done, ",")...)
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return word == "" || !strings.HasPrefix(done+word, begun) || slices.Contains(taken, word)
	})
	slices.Sort(words)
	words = slices.Compact(words)
	for i := range words {
		words[i] = done + words[i]
	}
	return words
}

// CompleteArguments completes the arguments and the selection flags of a command and its subcommands: an argument NODE or ALLOCATION, and
// the flags that have the same meaning everywhere.
func (s *Settings) CompleteArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		s.CompleteArguments(sub)
	}
	switch {
	case cmd.ValidArgsFunction != nil:
	case strings.Contains(cmd.Use, "[NODE...]"):
		cmd.ValidArgsFunction = s.CompleteNodes()
	case strings.Contains(cmd.Use, " NODE"):
		cmd.ValidArgsFunction = s.completeOneNode()
	case strings.Contains(cmd.Use, "[ALLOCATION...]"):
		cmd.ValidArgsFunction = s.completeAllocations()
	case !cmd.HasSubCommands():
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"resource-class": s.completeClasses(), "provision-state": completeStates, "allocation": s.completeAllocations(),
		"node": s.CompleteNodes(), "yes-erase": s.CompleteNodes(),
		"runbook": s.completeRunbooks(), "output": cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp),
		"auth-type":   cobra.FixedCompletions([]string{"none", "http_basic", "keystone"}, cobra.ShellCompDirectiveNoFileComp),
		"limit-scope": cobra.FixedCompletions([]string{"all", "conductor_group", "shard"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		if cmd.LocalFlags().Lookup(flag) == nil {
			continue
		}
		if _, has := cmd.GetFlagCompletionFunc(flag); !has {
			_ = cmd.RegisterFlagCompletionFunc(flag, complete) // it fails without the flag, or with another completion
		}
	}
}
