// Command fakeironic serves a fake Ironic for demonstrations and try-outs. Its first line of output is its URL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fakeironic:", err)
		os.Exit(1)
	}
}

// posting says how to add a discovered machine.
const posting = `
With -discover, the fake also discovers the machines that you post. ADDRESS is the address that it prints:

  curl -d '{"inventory": {"bmc_address": "198.18.0.99",
    "system_vendor": {"manufacturer": "Example Systems", "product_name": "Rack One", "serial_number": "RK000099"},
    "cpu": {"architecture": "x86_64", "count": 32}, "memory": {"physical_mb": 131072},
    "boot": {"current_boot_mode": "uefi", "pxe_interface": "52:55:00:00:63:00"}, "disks": [],
    "interfaces": [{"name": "eno1", "mac_address": "52:55:00:00:63:00", "ipv4_address": "198.19.0.99"}]}}' \
    -H 'Content-Type: application/json' -H 'X-OpenStack-Ironic-API-Version: 1.90' ADDRESS/v1/continue_inspection
`

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	var fake fakeironic.Server
	flags := flag.NewFlagSet("fakeironic", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	nodes := flags.Int("nodes", 0, "number of available nodes to start with")
	class := flags.String("class", "baremetal", "resource class of these nodes")
	discover := flags.Int("discover", 0, "number of discovered machines to start with; more can be posted, see below")
	agent := flags.Bool("agent", false, "let the agents of discovered machines run on, as power_control = \"agent\" needs it: fast_track, and no power-off after the discovery")
	flags.DurationVar(&fake.StepTime, "step-time", 0, "duration of each transient state")
	flags.StringVar(&fake.Username, "username", "", "user name for http_basic authentication; empty means no authentication")
	flags.StringVar(&fake.Password, "password", "", "password of -username")
	flags.StringVar(&fake.MaxMicroversion, "max-microversion", "1.115", "highest API version; 1.82 behaves as Ironic 21.4")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "Usage of fakeironic:")
		flags.PrintDefaults()
		_, _ = fmt.Fprint(flags.Output(), posting)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	fake.AddFleet(*nodes, *class)
	fake.Discovery, fake.FastTrack, fake.DiscoveryKeepsPower = *discover > 0, *agent, *agent
	for n := range *discover {
		fake.Discover(fakeironic.SampleInventory(n))
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	return fakehttp.Serve(ctx, &fake, listener)
}
