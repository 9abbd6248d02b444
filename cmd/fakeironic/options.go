package main

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are what the flags say.
type options struct {
	listen             string
	nodes              int
	class              string
	seeds              []string
	discover           int
	agents             bool
	failures           failures
	bmcs               bmcs
	stepTime           time.Duration
	serveFor           time.Duration
	username, password string
	maxMicroversion    string
}

// newestMinor is the minor part of the newest API version that the fake has.
const newestMinor = 115

// readOptions reads the flags. It writes the help to stderr.
func readOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{failures: failures{}}
	flags := flag.NewFlagSet("fakeironic", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // main prints errors, without the help behind them
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "serve on this `ADDRESS`; port 0 takes a free port")
	flags.IntVar(&o.nodes, "nodes", 0, "start with `N` available nodes of the driver fake-hardware: node-000, node-001, ...")
	flags.StringVar(&o.class, "class", "baremetal", "resource class of the nodes of -nodes: `NAME`")
	flags.Func("seed", "start with the nodes of a `FILE` in JSON, see below; may be repeated", func(file string) error {
		o.seeds = append(o.seeds, file)
		return nil
	})
	flags.IntVar(&o.discover, "discover", 0, "start with `N` machines that Ironic has discovered, and discover those that are "+
		"posted, see below")
	flags.BoolVar(&o.agents, "agents", false, "let Ironic's agent run on discovered machines, and on nodes of -seed whose power "+
		"interface is agent,\n"+
		"as power_control = \"agent\" needs it: fast_track, and no power off after the discovery")
	flags.Func("fail", "let an operation of a node fail: `NODE=STATE` every time, NODE=STATE:N the first N times; NODE=STATE@REASON "+
		"for a reason;\nmay be repeated, see below", o.failures.add)
	flags.Func("bmcs", "answer only at these addresses of BMCs: `LIST` of addresses, networks and names, such as 192.0.2.0/24, or\n"+
		"192.0.2.7:8443 for an unusual port; may be repeated. Without it,\nall BMCs answer whose names do not end in .invalid", o.bmcs.add)
	flags.DurationVar(&o.stepTime, "step-time", 0, "stay in each transient state, such as cleaning, for a `TIME` such as 2s; 0: until "+
		"the next request")
	flags.DurationVar(&o.serveFor, "serve-for", 0, "end after a `TIME` such as 30m; 0: serve until Ctrl-C")
	flags.StringVar(&o.username, "username", "", "ask for HTTP basic authentication as this user: `NAME`; empty: ask for none")
	flags.StringVar(&o.password, "password", "", "password of -username: `TEXT`")
	flags.StringVar(&o.maxMicroversion, "max-microversion", "1."+strconv.Itoa(newestMinor),
		"highest API `VERSION`; up to 1.82 the fake behaves as Ironic 21.4, else as Ironic 39")
	flags.Usage = func() {
		flags.SetOutput(stderr)
		_, _ = fmt.Fprint(stderr, introduction)
		flags.PrintDefaults()
		_, _ = fmt.Fprintf(stderr, explanation, strings.Join(stateNames(), ", "), listed(reasonNames()))
		flags.SetOutput(io.Discard)
	}
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }) {
		flags.Usage()
		return nil, flag.ErrHelp
	}
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("%w; fakeironic -h explains the flags", err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag; fakeironic -h explains the flags", flags.Arg(0))
	}
	return o, o.check()
}

var versionPattern = regexp.MustCompile(`^1\.([1-9][0-9]{0,2})$`)

// check refuses values that make no sense.
// legacy reports whether the fake behaves as Ironic 21.4.
func (o *options) legacy() bool {
	minor, err := strconv.Atoi(strings.TrimPrefix(o.maxMicroversion, "1."))
	return err == nil && minor <= 82
}

// listed joins names, ten a line.
func listed(names []string) string {
	var lines []string
	for some := range slices.Chunk(names, 10) {
		lines = append(lines, strings.Join(some, ", "))
	}
	return strings.Join(lines, ",\n")
}

func (o *options) check() error {
	minor := 0
	if found := versionPattern.FindStringSubmatch(o.maxMicroversion); found != nil {
		minor, _ = strconv.Atoi(found[1]) // the pattern has digits only
	}
	switch {
	case o.nodes < 0:
		return fmt.Errorf("-nodes %d is negative", o.nodes)
	case o.discover < 0:
		return fmt.Errorf("-discover %d is negative", o.discover)
	case o.stepTime < 0:
		return fmt.Errorf("-step-time %s is negative", o.stepTime)
	case o.serveFor < 0:
		return fmt.Errorf("-serve-for %s is negative", o.serveFor)
	case o.password != "" && o.username == "":
		return fmt.Errorf("-password needs -username")
	case minor == 0 || minor > newestMinor:
		return fmt.Errorf("-max-microversion %q is not a version between 1.1 and 1.%d", o.maxMicroversion, newestMinor)
	}
	return nil
}

const introduction = `fakeironic serves a fake Ironic, whose machines are in memory. It prints its address on the first line, and ends with Ctrl-C.

  fakeironic -listen 127.0.0.1:6385 -nodes 40 -step-time 2s
  export METAL_ENDPOINT=http://127.0.0.1:6385   # for terraform and metal

`

// explanation has verbs for the names of the states, and for those of the reasons.
const explanation = `
-seed reads the nodes of your site. Nothing that happens to them in the fake happens to your machines:

  baremetal node list --long --limit 0 -f json > nodes.json
  baremetal port list --long --limit 0 -f json > ports.json
  fakeironic -seed nodes.json -seed ports.json

baremetal node list leaves out attributes such as network_data and retired. baremetal node show -f json has all: a file may have the output for several
nodes, one after the other. It may also have allocations, and answers of Ironic's API such as that of GET /v1/nodes/detail.
A node needs a name or a UUID; without a state it is available. A node in the middle of an operation is in the failed state of it, as after a
restart of Ironic. Secrets stay masked. The fake says what else it changes, such as drivers that it does not have. Port groups, chassis, and what
an inspection has found are not read.

-fail NODE=STATE names a node by its name or UUID, also one that does not exist yet. The states are:
  %s
"clean" is each cleaning, "deploy" the first deployment, "undeploy" the end of a deployment before its cleaning, "verify" the check of the
BMC, and "power" each change of power that a client asks for. last_error is what Ironic of the version says.
NODE=STATE@REASON fails for a reason that the provider knows, such as deploy@image-404, clean@bmc-busy:2 or verify@redfish-auth:

  fakeironic -nodes 3 -fail node-001=deploy@image-404:1 -fail node-002=clean

The reasons are %s.

With -discover or -agents, the fake also discovers the machines that you post. ADDRESS is the address that it prints:

  curl -d '{"inventory": {"bmc_address": "198.18.0.99",
    "system_vendor": {"manufacturer": "Example Systems", "product_name": "Rack One", "serial_number": "RK000099"},
    "cpu": {"architecture": "x86_64", "count": 32}, "memory": {"physical_mb": 131072},
    "boot": {"current_boot_mode": "uefi", "pxe_interface": "52:55:00:00:63:00"}, "disks": [],
    "interfaces": [{"name": "eno1", "mac_address": "52:55:00:00:63:00", "ipv4_address": "198.19.0.99"}]}}' \
    -H 'Content-Type: application/json' -H 'X-OpenStack-Ironic-API-Version: 1.90' ADDRESS/v1/continue_inspection
`
