package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/metrics"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

type metricsFlags struct {
	listen     string
	anyAddress bool
	limit      throttle.Limit
}

func (f *metricsFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "metrics-listen", "", "serve metrics for Prometheus at this `address`, such as 127.0.0.1:9464; with port "+
		"0 the command chooses one and tells it")
	flags.BoolVar(&f.anyAddress, "metrics-any-address", false, "allow that --metrics-listen is not a loopback address: whoever reaches "+
		"it reads the metrics")
	cli.Section(flags, "Flags of the provisioning limit whose slots the metrics count", func() { cli.LimitFlags(flags, &f.limit) })
}

func (f *metricsFlags) check() error {
	limit := cli.CheckLimit(f.limit)
	if f.listen == "" {
		if f.anyAddress {
			return errors.Join(limit, errors.New("--metrics-any-address has no effect without --metrics-listen"))
		}
		return limit
	}
	host, _, err := net.SplitHostPort(f.listen)
	switch {
	case err != nil:
		return errors.Join(limit, fmt.Errorf("--metrics-listen is %q; it must be an address with a port, such as 127.0.0.1:9464", f.listen))
	case !f.anyAddress && !isLoopback(host):
		return errors.Join(limit, fmt.Errorf("--metrics-listen is %q, which is not a loopback address: without a password, whoever "+
			"reaches it would read the metrics. Use 127.0.0.1, or add --metrics-any-address", f.listen))
	}
	return limit
}

// isLoopback reports whether only programs on this computer reach a host.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// start opens the port if the flags ask for metrics, and makes the watch feed them. ctx ends when they cannot be served any more. The
// caller calls stop at the end, which returns the reason.
func (f *metricsFlags) start(cmd *cobra.Command, options *watch.Options,
	list func(context.Context) (watch.Sample, error),
) (ctx context.Context, stop func() error, err error) {
	if f.listen == "" {
		return cmd.Context(), func() error { return nil }, nil
	}
	server, err := metrics.Listen(cmd.Context(), f.listen)
	if err != nil {
		return nil, nil, fmt.Errorf("could not serve metrics at %s: %w. Set --metrics-listen to a free port of this computer",
			f.listen, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Metrics: %s\n", server.URL())
	collector := metrics.New(f.limit.Max)
	options.Displays = append(options.Displays, collector)
	options.List, options.Patient = list, true
	ctx, cancel := context.WithCancel(cmd.Context())
	ended := make(chan error, 1)
	routine.Go(func() {
		defer cancel()
		ended <- server.Serve(ctx, collector)
	}, func(err *routine.PanicError) { ended <- err })
	return ctx, func() error {
		cancel()
		return <-ended
	}, nil
}
