package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

// needs are the arguments of the commands that do not work on a node alone.
var needs = map[string][]string{
	"clean": {"--steps", "bios.factory_reset"}, "service": {"--steps", "bios.factory_reset"},
	"qualify": {"--steps", "deploy.burnin_cpu,deploy.burnin_disk"}, "rescue": {"--password-file", "-"},
	"virtual-media attach": {"--image-url", "http://images.test/a.iso"}, "boot-device set": {"pxe"},
}

// changing returns the commands below one that ask before they change a machine, without the name of the program.
func changing(command *cobra.Command) (names []string) {
	for _, below := range command.Commands() {
		names = append(names, changing(below)...)
	}
	if command.Flags().Lookup("yes") != nil {
		_, name, _ := strings.Cut(command.CommandPath(), " ")
		names = append(names, name)
	}
	return names
}

// Every command that changes machines has its harm in the one table, and --yes alone never lets one erase anything: not in any state of a
// machine, and whatever note of an operation its node has.
func TestYes_erasesNothing(t *testing.T) {
	t.Parallel()
	commands := changing(newRoot(func(string) string { return "" }, &rest.Secrets{}))
	if len(commands) < 20 {
		t.Fatalf("there are more commands than %q", commands)
	}
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			listed := func(op operate.Operation) bool { return op.Command == command }
			if command != "release" && command != "freeze" && !slices.ContainsFunc(operate.All(), listed) {
				t.Fatalf("metal %s is not among all operations", command)
			}
			s := deployedSite(t)
			note := map[string]any{
				"command": "inspect", "by": "eve@desk", "goal": "available",
				"since": time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339),
			}
			for _, state := range []string{
				"enroll", "manageable", "available", "active", "rescue", "error", "clean failed", "inspect failed", "deploy failed",
				"adopt failed", "clean hold", "deploy hold", "clean wait", "wait call-back",
			} {
				s.ironic.Set(name(1), "provision_state", state)
				s.ironic.Set(name(1), "extra", map[string]any{"terraform_metal_operation": map[string]any{ironic.NewUUID(): note}})
				args := append(strings.Fields(command), needs[command]...)
				if command == "release" {
					args = append(args, "--yes", "--node", name(1))
				} else {
					args = append(args, "--yes", "--timeout", "10s", name(1))
				}
				if command == "indicator" { // its state comes last
					args = append(args, "blink")
				}
				s.run(t, args...)
			}
			for _, sent := range s.ironic.Requests() {
				if erases(sent.Method, sent.Path, sent.Body) {
					t.Errorf("%s %s %s", sent.Method, sent.Path, sent.Body)
				}
			}
		})
	}
}

// erases reports whether a request makes Ironic erase or write disks, or forget a machine.
func erases(method, path, body string) bool {
	if method == http.MethodDelete && strings.HasPrefix(path, "/v1/nodes/") && strings.Count(path, "/") == 3 {
		return true
	}
	verbs := []string{`"provide"`, `"deleted"`, `"active"`, `"rebuild"`}
	sends := func(verb string) bool { return strings.Contains(body, verb) }
	return strings.HasSuffix(path, "/states/provision") && slices.ContainsFunc(verbs, sends)
}

func TestDelete_deletesADeadMachine(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.wants(t, cli.ExitNodesFailed, []string{"refused", "metal undeploy --release node-000"}, "delete", name(0), "--yes-erase", name(0))
	s.wants(t, cli.ExitNodesFailed, []string{"metal maintenance on"}, "delete", name(0), "--dead", "--yes-erase", name(0))
	s.wants(t, cli.ExitDone, nil, "maintenance", "on", name(0), "--reason", "dead")
	s.wants(t, cli.ExitUnconfirmed, []string{"Use --yes-erase node-000"}, "delete", name(0), "--dead", "--yes")
	s.wants(t, cli.ExitDone, []string{"done"}, "delete", name(0), name(1), "--dead", "--yes-erase", name(0)+","+name(1))
	for i := range 2 {
		if _, is := s.ironic.Node(name(i)); is {
			t.Errorf("%s still has a node", name(i))
		}
	}
}
