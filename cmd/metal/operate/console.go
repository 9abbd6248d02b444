// Package operate has the commands of metal that operate machines.
package operate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

const aboutConsole = `metal console tells how to reach the console of a machine: its type, its URL, and what to run.

If the console is not enabled, the command asks whether to enable it; --enable answers yes. Ironic connects to the BMC for
that, and touches nothing on the machine. A metal_host with console = "disabled" disables it again with the next apply.

What Ironic says depends on the console interface of the node:

  ipmitool-socat         a TCP port for socat or telnet. Newer Ironics end the session of the user who is connected when
                         the address is read, so the command asks first; --disconnect answers yes
  ipmitool-shellinabox   a web page
  redfish-graphical      a web page with the screen, for 10 minutes. The URL contains a secret

The command writes the URL to standard output only, and never to the log. With --open it also opens a web page in $BROWSER, or
in the standard browser; other users of this computer may then see the URL in the list of processes.

When a machine is undeployed, Ironic stops its console without saying so, until the next deployment. If nothing answers, use
--restart, which disables and enables the console. That ends all sessions.

  metal console rack1-07                  asks before it changes anything
  metal console rack1-07 --enable --open  in a browser, without a question`

type consoleFlags struct {
	enable, disconnect, restart, open bool
	timeout                           time.Duration
}

// Commands returns the commands.
func Commands(s *cli.Settings) []*cobra.Command {
	return []*cobra.Command{
		newConsole(s), newPower(s),
		newSimple(s, "manage", "Make free machines manageable", aboutManage, alone(operate.Manage)),
		newSimple(s, "inspect", "Inspect free machines again", aboutInspect, operate.Inspect),
		newSimple(s, "provide", "Make free machines available, for which Ironic cleans them", aboutProvide, operate.Provide),
		newClean(s), newQualify(s), newService(s),
		newSimple(s, "abort", "End operations that wait for the machine or are held", aboutAbort, alone(operate.Abort)),
		newSimple(s, "unhold", "Continue operations that a step holds", aboutUnhold, alone(operate.Unhold)),
		newSimple(s, "nmi", "Send machines a non-maskable interrupt", aboutNMI, alone(operate.NMI)),
		newMedia(s), newBootDevice(s), newIndicator(s),
		newFreeze(s), newThaw(s), newMaintenance(s), newReady(s), newRetire(s),
		newSimple(s, "unretire", "End the retirement of machines", aboutUnretire, alone(operate.Unretire)),
		newDelete(s), newRelease(s), newUndeploy(s), newRescue(s),
		newSimple(s, "unrescue", "End the rescue system of machines, and start what is deployed", aboutUnrescue, alone(operate.Unrescue)),
	}
}

func newConsole(s *cli.Settings) *cobra.Command {
	cmd := &cobra.Command{Use: "console NODE", Short: "Tell how to reach the console of a machine", Long: aboutConsole, Args: cli.OneNode}
	var own consoleFlags
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&own.enable, "enable", false, "enable the console without a question")
	flags.BoolVar(&own.disconnect, "disconnect", false, "read the address without a question, though that ends the session of the user "+
		"who is connected")
	flags.BoolVar(&own.restart, "restart", false, "disable and enable the console, which ends all sessions")
	flags.BoolVar(&own.open, "open", false, "open a web page in the browser")
	cli.DurationVar(flags, &own.timeout, "timeout", 5*time.Minute, "longest `time` to wait until the console is enabled")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return own.run(cmd, s, args[0]) }
	return cmd
}

func (f *consoleFlags) run(cmd *cobra.Command, s *cli.Settings, node string) error {
	if err := errors.Join(cli.Positive("timeout", f.timeout), s.CompleteIronic(cmd.Flags())); err != nil {
		return err
	}
	s.LogRequests(cmd)
	site := machine.New(s.Ironic)
	m, err := site.Machine(cmd.Context(), node)
	if api.IsNotFound(err) {
		return &cli.Failure{Code: cli.ExitNothing, Err: fmt.Errorf("%s has no node %s that you may see", s.IronicName(), node)}
	}
	if err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not read node %s: %w", node, err)}
	}
	if m.Node().ConsoleInterface == ironic.ConsoleNone {
		return withoutConsole("the console interface of node %s is %s. Set another one, such as %s for the driver ipmi", node,
			ironic.ConsoleNone, ironic.ConsoleSocat)
	}
	ask := cli.NewAsker(cmd)
	started, err := f.start(cmd.Context(), m, ask)
	if err == nil && !started {
		err = f.allowRead(cmd.Context(), m, ask)
	}
	if err != nil {
		return err
	}
	console, err := site.Ironic.Console(cmd.Context(), m.Node().UUID)
	if err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not read the console of node %s: %w", node, err)}
	}
	if err := tellConsole(cmd, node, console, started); err != nil || !f.open {
		return err
	}
	if err := openPage(cmd.Context(), s.Getenv("BROWSER"), console.URL); err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: fmt.Errorf("could not open the console of node %s: %w", node, err)}
	}
	return nil
}

// start enables the console if it is not enabled, and restarts it if the flags say so. It reports whether it has done that: no other user
// can be connected then.
func (f *consoleFlags) start(ctx context.Context, m *machine.Machine, ask *cli.Asker) (started bool, err error) {
	node := ironic.NodeLabel(m.Node())
	if m.Node().ConsoleEnabled {
		if !f.restart {
			return false, nil
		}
		if err := m.SetConsole(ctx, false, f.timeout); err != nil {
			return false, withCause(err)
		}
	} else if !f.enable && !f.restart && !ask.Yes("The console of node %s is not enabled. Enable it? That touches nothing on the machine.",
		node) {
		if ctx.Err() != nil {
			return false, cli.ErrStopped
		}
		return false, withoutConsole("the console of node %s is not enabled. Use --enable", node)
	}
	if err := m.SetConsole(ctx, true, f.timeout); err != nil {
		return false, withCause(err)
	}
	return true, nil
}

// withCause ends the command with an error and what has caused it.
func withCause(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return &cli.Failure{Code: cli.ExitError, Err: err}
}

// keepsSessions is the last version of the API whose Ironic is known to end no session when it tells the address of a console.
const keepsSessions api.Microversion = 82

// allowRead asks before a request that ends the session of the user who is connected (reference/ironic.md#consoles).
func (f *consoleFlags) allowRead(ctx context.Context, m *machine.Machine, ask *cli.Asker) error {
	if f.disconnect || m.Node().ConsoleInterface != ironic.ConsoleSocat {
		return nil
	}
	highest, err := m.Site().Ironic.Highest(ctx)
	if err != nil {
		return &cli.Failure{Code: cli.ExitError, Err: err}
	}
	node := ironic.NodeLabel(m.Node())
	switch {
	case highest <= keepsSessions, ask.Yes("Another user may be connected to the console of node %s: when this Ironic tells its address, "+
		"it ends the session. Go on?", node):
		return nil
	case ctx.Err() != nil:
		return cli.ErrStopped
	}
	return withoutConsole("the console of node %s is %s. When this Ironic tells its address, it ends the session of the user who is "+
		"connected. Use --disconnect to do that", node, ironic.ConsoleSocat)
}

// withoutConsole ends the command because there is no console to show.
func withoutConsole(format string, args ...any) error {
	return &cli.Failure{Code: cli.ExitNoConsole, Err: fmt.Errorf(format, args...)}
}

// tellConsole writes how to reach a console: to standard output, because the URL may contain a secret.
func tellConsole(cmd *cobra.Command, node string, console ironic.Console, started bool) error {
	out, hints := cmd.OutOrStdout(), cmd.ErrOrStderr()
	address, err := url.Parse(console.URL)
	switch {
	case !console.Enabled:
		return withoutConsole("the console of node %s has been disabled meanwhile. Run the command again", node)
	case console.URL == "":
		return withoutConsole("the console of node %s is enabled, but Ironic tells no address of it. The driver has none, as fake-hardware",
			node)
	case err != nil || address.Scheme == "":
		return withoutConsole("the console of node %s is enabled, but Ironic tells no complete address of it. For a graphical console, "+
			"the site must set [vnc]public_url", node)
	}
	cli.Line(out, "type: %s", console.Type)
	cli.Line(out, "url:  %s", console.URL)
	switch {
	case console.Type == "vnc":
		cli.Line(hints, "Open the URL in a browser. It contains a secret. Ironic ends the console 10 minutes after its start, unless the "+
			"site says otherwise.")
		return nil
	case isPage(address):
		cli.Line(hints, "Open the URL in a browser.")
	default:
		for _, command := range commandsFor(address) {
			cli.Line(out, "run:  %s", command)
		}
	}
	if !started {
		cli.Line(hints, "If nothing answers there, use --restart.")
	}
	return nil
}

// plainHost is a host name or an IP address, which cannot contain anything that a shell would execute.
var plainHost = regexp.MustCompile(`^[0-9A-Za-z.:_-]+$`)

// commandsFor returns the commands that connect a terminal to a TCP address; none if it is not a plain one.
func commandsFor(address *url.URL) []string {
	host, port := address.Hostname(), address.Port()
	if address.Scheme != "tcp" || port == "" || !plainHost.MatchString(host) || strings.HasPrefix(host, "-") {
		return nil
	}
	connect := "TCP:" + host
	if strings.Contains(host, ":") {
		connect = "TCP6:[" + host + "]"
	}
	return []string{"socat -,raw,echo=0,escape=0x1d " + connect + ":" + port, "telnet " + host + " " + port}
}

// isPage reports whether a browser can open a URL.
func isPage(address *url.URL) bool { return address.Scheme == "http" || address.Scheme == "https" }

// openPage opens a web page in a browser; "": that of the system. It does not wait for the browser.
func openPage(ctx context.Context, browser, page string) error {
	if address, err := url.Parse(page); err != nil || !isPage(address) {
		return errors.New("it is no web page, so --open has no effect")
	}
	command := []string{"xdg-open"}
	switch {
	case browser != "":
		command = []string{browser}
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	process := exec.CommandContext(context.WithoutCancel(ctx), command[0],
		append(command[1:], page)...) //nolint:gosec // the user names the browser, and no shell reads the URL
	if err := process.Start(); err != nil {
		return err // it names the program, not the URL
	}
	return process.Process.Release()
}
