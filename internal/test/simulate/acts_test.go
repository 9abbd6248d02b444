package simulate_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/manual"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/observe"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// act is what a user does besides plans and applies.
type act func(w *workspace, p *process) error

// do does something with a process of its own. It reports whether it has failed.
func (w *workspace) do(t *testing.T, act act) (failed bool) {
	t.Helper()
	w.runs++
	p := w.site.start(t, fmt.Sprintf("%s/%d", w.name, w.runs), w.block, 0, false, w.logs)
	defer p.close()
	err := act(w, p)
	w.site.tell("%s: ends: %v", p.run, err)
	return err != nil
}

// invoke invokes an action.
func invoke(action string, settings object) act {
	return func(w *workspace, p *process) error {
		of := schemas()[actionPrefix+action]
		value := valueOf(of.kind, settings, nil)
		w.site.played.addValue(actionPrefix+action, value, true)
		config := encode(of.kind, value)
		valid, err := rpc(p, p.server.ValidateActionConfig, &tfprotov6.ValidateActionConfigRequest{ActionType: action, Config: config})
		if err != nil || p.said(action, valid.Diagnostics) {
			return errFailed
		}
		planned, err := rpc(p, p.server.PlanAction, &tfprotov6.PlanActionRequest{ActionType: action, Config: config})
		if err != nil || p.said(action, planned.Diagnostics) {
			return errFailed
		}
		said, err := rpc(p, func(ctx context.Context, req *tfprotov6.InvokeActionRequest) (said []*tfprotov6.Diagnostic, err error) {
			stream, err := p.server.InvokeAction(ctx, req)
			if err != nil {
				return nil, err
			}
			for event := range stream.Events {
				if end, is := event.Type.(tfprotov6.CompletedInvokeActionEventType); is {
					said = append(said, end.Diagnostics...)
				}
			}
			return said, nil
		}, &tfprotov6.InvokeActionRequest{ActionType: action, Config: config})
		if err != nil || p.said(action, said) {
			return errFailed
		}
		return nil
	}
}

// list lists resources, as terraform query does. They must be as many as wanted.
func list(kind string, settings object, wanted int) act {
	return func(w *workspace, p *process) error {
		of := schemas()[listPrefix+kind]
		value := valueOf(of.kind, settings, nil)
		w.site.played.addValue(listPrefix+kind, value, true)
		found, err := rpc(p, func(ctx context.Context, req *tfprotov6.ListResourceRequest) (found int, err error) {
			stream, err := p.server.ListResource(ctx, req)
			if err != nil {
				return 0, err
			}
			for result := range stream.Results {
				if p.said(kind, result.Diagnostics) {
					return 0, errFailed
				}
				found++
			}
			return found, nil
		}, &tfprotov6.ListResourceRequest{TypeName: kind, Config: encode(of.kind, value), IncludeResource: true, Limit: 100})
		if err == nil && found != wanted {
			w.site.broken("the list of %s %v has %d, want %d", kind, settings, found, wanted)
		}
		return err
	}
}

// metalCommand returns the program metal.
func metalCommand() *cobra.Command {
	return metalOver(&cli.Settings{Getenv: func(string) string { return "" }})
}

func metalOver(s *cli.Settings) *cobra.Command {
	root := cli.NewRoot(s, "")
	root.AddCommand(operate.Commands(s)...)
	root.AddCommand(observe.Commands(s)...)
	root.AddCommand(oneview.Command(s), manual.Command(s))
	return root
}

// command runs a command of the program metal.
func command(args ...string) act {
	return func(w *workspace, p *process) error {
		environ := map[string]string{}
		if w.site.appliance != nil {
			environ["ONEVIEW_ENDPOINT"], environ["ONEVIEW_USERNAME"], environ["ONEVIEW_PASSWORD"] = "http://"+oneviewHost, "metal", secret
		}
		s := &cli.Settings{Getenv: func(name string) string { return environ[name] }, Version: "test"}
		s.Ironic.Transport, s.OneView.Transport, s.Ironic.Secrets = p.line, p.line, &rest.Secrets{}
		root := metalOver(s)
		found, _, err := root.Find(args)
		if err != nil {
			return err
		}
		w.site.played.add(found.CommandPath())
		var out bytes.Buffer
		root.SetIn(strings.NewReader(secret + "\n"))
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(args, "--endpoint", "http://"+siteHost))
		err = root.ExecuteContext(p.ctx)
		p.keepsSecrets("the output of "+found.CommandPath(), out.String())
		w.site.tell("%s: metal %s: %v\n%s", p.run, strings.Join(args, " "), err, out.String())
		return err
	}
}
