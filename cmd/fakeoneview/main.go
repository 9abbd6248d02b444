// Command fakeoneview serves a fake HPE OneView appliance for demonstrations and try-outs. Its first line of output is its URL,
// the second, unless it serves plain HTTP, the path of the CA file that clients need.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

func main() {
	os.Exit(fakehttp.Main(context.Background(), "fakeoneview", func(ctx context.Context, args []string) error {
		return run(ctx, args, os.Stdout)
	}))
}

// options are the flags that are not fields of the fake.
type options struct {
	listen   string
	blades   int
	rack     int
	taken    int
	insecure bool
	caFile   string
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	fake := fakeoneview.Server{MissingIfMatch: http.StatusOK}
	o, err := parse(&fake, args)
	if err != nil {
		return err
	}
	blades := fake.AddBlades(o.blades)
	fake.AddRackServers(o.rack)
	for _, uri := range blades.Hardware[:min(o.taken, o.blades)] {
		fake.TakeHardware(uri)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if !o.insecure {
		if o.caFile == "" {
			folder, err := os.MkdirTemp("", "fakeoneview-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(folder)
			o.caFile = filepath.Join(folder, "ca.pem")
		}
		if listener, err = fakehttp.Secure(listener, o.caFile); err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "https://%s\n%s\n", listener.Addr(), o.caFile)
	} else {
		_, err = fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	}
	if err != nil {
		return err
	}
	return fakehttp.Serve(ctx, &fake, listener)
}

// parse reads the flags into the fake and the options.
func parse(fake *fakeoneview.Server, args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("fakeoneview", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	flags.IntVar(&o.blades, "hardware", 0, "number of free blades to start with, with a template for them")
	flags.IntVar(&o.rack, "rack", 0, "number of free rack servers to start with, with a template for them")
	flags.IntVar(&o.taken, "taken", 0, "number of these blades that another user has taken")
	flags.BoolVar(&o.insecure, "insecure-http", false, "serve plain HTTP")
	flags.StringVar(&o.caFile, "ca-file", "", "file for the certificate of the CA; empty uses a temporary file")
	flags.DurationVar(&fake.StepTime, "step-time", 0, "duration of each state of a task")
	flags.StringVar(&fake.Username, "username", "", "user name of the only account; empty accepts every login")
	flags.StringVar(&fake.Password, "password", "", "password of -username")
	flags.IntVar(&fake.CurrentVersion, "api-version", 8600, "highest X-API-Version")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.blades < 0 || o.rack < 0 || o.taken < 0:
		return o, errors.New("-hardware, -rack and -taken must not be negative")
	case fake.CurrentVersion < 200:
		return o, fmt.Errorf("-api-version %d: the first version with templates is 200", fake.CurrentVersion)
	}
	return o, nil
}
