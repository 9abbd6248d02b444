// Command metal-oneview keeps OpenStack Ironic and HPE OneView in agreement about the servers that they share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set at build time.
var version = "dev"

// Exit codes.
const (
	exitDone        = 0
	exitError       = 1 // nothing, or not everything, could be looked at
	exitUsage       = 2
	exitNodesFailed = 3 // the others are done
	exitWouldChange = 4 // of a dry run
)

const usage = `metal-oneview keeps OpenStack Ironic and HPE OneView in agreement about the servers that they share.

A node shares its server hardware if its driver_info has server_hardware_uri, and dynamic_allocation true (or, where that is
not set, applied_server_profile_uri). Who uses the hardware is told by the server profile on it:

  free       there is none
  ironic     it is the one in applied_server_profile_uri of the node's driver_info
  oneview    it is another one; then nothing is ever done to the server or to its profile

Commands:

  metal-oneview status     show who uses what
  metal-oneview sync       take nodes out of service whose servers OneView users have taken, and return them when freed
  metal-oneview migrate    move nodes from pre-allocation to dynamic allocation
  metal-oneview version    print the version

"metal-oneview COMMAND -h" explains a command and its flags.

Environment:

  METAL_ENDPOINT           URL of Ironic, such as https://ironic.example.com:6385 (or IRONIC_ENDPOINT)
  METAL_USERNAME, METAL_PASSWORD
                           for HTTP basic authentication
  OS_CLOUD, OS_REGION_NAME, OS_AUTH_URL and the other OS_* variables
                           for Keystone
  ONEVIEW_ENDPOINT         URL of the OneView appliance, such as https://oneview.example.com
  ONEVIEW_USERNAME, ONEVIEW_PASSWORD, ONEVIEW_DOMAIN
                           the login; without a domain it is the appliance's own (LOCAL)
  ONEVIEW_API_VERSION      highest X-API-Version to speak; default: the highest that both sides know
  ONEVIEW_CACERT_FILE      PEM file of the authority that signed the appliance's certificate
  ONEVIEW_INSECURE         true: do not verify the certificate
  MAX_CONCURRENT_PROVISIONING_HOSTS
                           the provisioning limit, as of the Terraform provider; default 20, 0 is none

Passwords are taken from the environment only, so that no list of processes shows them.

Exit codes:

  0  done
  1  it could not be done: Ironic or the appliance does not answer or refuses the login, or it was stopped
  2  wrong flags or settings
  3  some nodes could not be worked on, or looked at; the log says which and why. All others are done
  4  -dry-run found something to do
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the program at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// command is what all commands work with.
type command struct {
	getenv         func(string) string
	stdout, stderr io.Writer
}

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	c := &command{getenv: getenv, stdout: stdout, stderr: stderr}
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch args[0] {
	case "sync":
		return c.sync(ctx, args[1:])
	case "migrate":
		return c.migrate(ctx, args[1:])
	case "status":
		return c.status(ctx, args[1:])
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, "metal-oneview", version)
		return exitDone
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return exitDone
	}
	return c.misused(fmt.Errorf("there is no command %q; metal-oneview -h lists them", args[0]))
}

// parse reads the flags of a command. If done is true the command is over, with that exit code: help was asked for, or the
// flags are wrong.
func (c *command) parse(flags *flag.FlagSet, about string, args []string) (code int, done bool) {
	flags.SetOutput(io.Discard) // of errors; they are told below
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(c.stdout)
		fmt.Fprintf(c.stdout, "%s\nFlags:\n\n", about)
		flags.PrintDefaults()
		return exitDone, true
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is too much: %s takes only flags", flags.Arg(0), flags.Name())
		if flags.Lookup("nodes") != nil {
			err = fmt.Errorf("%w, and the list of -nodes has commas and no spaces", err)
		}
	}
	if err != nil {
		return c.misused(fmt.Errorf("%w; %s -h lists the flags", err, flags.Name())), true
	}
	return exitDone, false
}

// misused says what is wrong with the command line.
func (c *command) misused(err error) int {
	fmt.Fprintln(c.stderr, "metal-oneview:", err)
	return exitUsage
}
