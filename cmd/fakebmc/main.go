// Command fakebmc serves BMCs that speak Redfish, and IPMI if asked to, for demonstrations and try-outs. It prints the URLs (http,
// then https), the path of the CA file that clients need, and for each machine its addresses for metal_host.bmc, each with its user
// name and its password.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc/ipmi"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc/qemu"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

func main() {
	os.Exit(fakehttp.Main(context.Background(), "fakebmc", func(ctx context.Context, args []string) error {
		return run(ctx, args, os.Stdout)
	}))
}

type options struct {
	listen, listenTLS, caFile string
	ipmi                      []string
	machines                  int
	username, password        string
	startTime, shutdownTime   time.Duration
	ignoreShutdown            bool
	sessionTime, restartTime  time.Duration
	updateTime                time.Duration
	vm, emulate               bool
	vmFolder, vmTaps          string
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "fakebmc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	o.caFile, o.vmFolder = cmp.Or(o.caFile, filepath.Join(folder, "ca.pem")), cmp.Or(o.vmFolder, folder)
	fake := &fakebmc.Server{SessionTime: o.sessionTime}
	var bmcs []*fakebmc.BMC
	for n := range o.machines {
		config := o.machine(n + 1)
		if o.vm {
			machine, err := o.boots(n, &config)
			if err != nil {
				return err
			}
			defer func() { _ = machine.Stop() }() // never fails
		}
		bmcs = append(bmcs, fake.Add(config))
	}
	var listen net.ListenConfig
	plain, err := listen.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	defer plain.Close()
	toSecure, err := listen.Listen(ctx, "tcp", o.listenTLS)
	if err != nil {
		return err
	}
	defer toSecure.Close()
	secure, err := fakehttp.Secure(toSecure, o.caFile)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "http://%s\nhttps://%s\n%s\n", plain.Addr(), secure.Addr(), o.caFile); err != nil {
		return err
	}
	for _, b := range bmcs {
		if err := announce(stdout, b, fmt.Sprintf("redfish-virtualmedia+http://%s%s", plain.Addr(), b.Path())); err != nil {
			return err
		}
	}
	var faces sync.WaitGroup
	defer faces.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, address := range o.ipmi {
		conn, err := listen.ListenPacket(ctx, "udp", address)
		if err != nil {
			return err
		}
		faces.Go(func() { _ = (&ipmi.Server{Fake: fake, BMC: bmcs[i]}).Serve(ctx, conn) }) // a network that fails is not the BMC's
		if err := announce(stdout, bmcs[i], "ipmi://"+conn.LocalAddr().String()); err != nil {
			return err
		}
	}
	return fakehttp.Serve(ctx, fake, plain, secure)
}

// announce prints the address of a BMC with its credentials.
func announce(stdout io.Writer, b *fakebmc.BMC, address string) error {
	username, password := b.Credentials()
	_, err := fmt.Fprintln(stdout, address, username, password)
	return err
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("fakebmc", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address for http; port 0 takes a free one")
	flags.StringVar(&o.listenTLS, "listen-tls", "127.0.0.1:0", "address for https; port 0 takes a free one")
	flags.StringVar(&o.caFile, "ca-file", "", "file for the certificate of the CA; empty uses a temporary file")
	addresses := flags.String("ipmi", "", "UDP addresses for IPMI, separated by commas, one for each machine; port 0 takes a free one, "+
		"empty serves no IPMI. Ironic waits between commands to the same IP address")
	flags.IntVar(&o.machines, "machines", 1, "number of machines, named m1, m2, ...")
	flags.StringVar(&o.username, "username", "admin", "user name")
	flags.StringVar(&o.password, "password", "", "password of all machines; empty gives each its own")
	flags.DurationVar(&o.startTime, "start-time", 0, "time from the command until a machine has power")
	flags.DurationVar(&o.shutdownTime, "shutdown-time", 0, "duration of a graceful shutdown")
	flags.BoolVar(&o.ignoreShutdown, "ignore-shutdown", false, "operating systems ignore graceful shutdowns")
	flags.DurationVar(&o.sessionTime, "session-time", 0, "time without requests after which a session ends; zero means 30 minutes")
	flags.DurationVar(&o.updateTime, "update-time", 0, "duration of a firmware update")
	flags.DurationVar(&o.restartTime, "restart-time", 0, "duration of a BMC's restart")
	flags.BoolVar(&o.vm, "vm", false, "machines that boot, which QEMU runs (Debian's qemu-system-x86 and ovmf)")
	flags.StringVar(&o.vmFolder, "vm-folder", "", "existing directory for the disks and consoles of -vm; empty uses a temporary one")
	flags.StringVar(&o.vmTaps, "vm-taps", "", "TAP interfaces of -vm, separated by commas, one for each machine; empty uses QEMU's user "+
		"network, in which Ironic does not reach the ramdisk")
	flags.BoolVar(&o.emulate, "vm-emulate", false, "emulate the processor of -vm even if KVM is there")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *addresses != "" {
		if o.ipmi = strings.Split(*addresses, ","); len(o.ipmi) != o.machines {
			return o, fmt.Errorf("-ipmi names %d addresses for %d machines", len(o.ipmi), o.machines)
		}
	}
	if taps := strings.Split(o.vmTaps, ","); o.vmTaps != "" && len(taps) != o.machines {
		return o, fmt.Errorf("-vm-taps names %d interfaces for %d machines", len(taps), o.machines)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, nil
}

func (o options) machine(n int) fakebmc.Config {
	return fakebmc.Config{
		Name: fmt.Sprintf("m%d", n), Username: o.username, Password: o.password, UpdateTime: o.updateTime, RestartTime: o.restartTime,
		Machine: &fakebmc.Simulated{StartTime: o.startTime, ShutdownTime: o.shutdownTime, IgnoresShutdown: o.ignoreShutdown},
	}
}

// boots puts a virtual machine behind the BMC of the machine with the given index.
func (o options) boots(index int, config *fakebmc.Config) (*qemu.Machine, error) {
	dir := filepath.Join(o.vmFolder, config.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config.MACs, config.CPUs, config.MemoryGiB, config.Drives = []string{fmt.Sprintf("52:54:00:00:00:%02x", index+1)}, 2, 2,
		[]int64{4 << 30}
	tap := ""
	if o.vmTaps != "" {
		tap = strings.Split(o.vmTaps, ",")[index]
	}
	machine, err := qemu.New(qemu.Config{
		Dir: dir, MAC: config.MACs[0], Serial: config.Name, Tap: tap, DiskBytes: config.Drives[0],
		Emulate: o.emulate,
	})
	config.Serial, config.Machine = config.Name, machine
	return machine, err
}
