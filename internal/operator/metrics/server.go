package metrics

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
)

// Time-outs of the server.
const (
	readWithin  = 10 * time.Second
	writeWithin = 30 * time.Second
	idleFor     = 2 * time.Minute
	closeWithin = 2 * time.Second
)

// scrapesAtOnce is how many scrapes are answered at the same time.
const scrapesAtOnce = 8

// Server answers scrapes.
type Server struct{ listener net.Listener }

// Listen opens the port of a server, so that a port that is in use is an error before anything else happens.
func Listen(ctx context.Context, address string) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Server{listener}, nil
}

// URL is where the metrics are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Serve answers scrapes until ctx ends. It fails if the server cannot go on.
func (s *Server) Serve(ctx context.Context, c *Collector) error {
	server := &http.Server{Handler: handler(c), ReadTimeout: readWithin, WriteTimeout: writeWithin, IdleTimeout: idleFor}
	ended := make(chan error, 1)
	routine.Go(func() { ended <- server.Serve(s.listener) }, func(err *routine.PanicError) { ended <- err })
	select {
	case err := <-ended:
		return fmt.Errorf("the server of the metrics has ended: %w", err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	if server.Shutdown(closing) != nil {
		return server.Close()
	}
	return nil
}

func handler(c *Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	pages := http.NewServeMux()
	pages.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtOnce}))
	pages.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "metal watch: the metrics are at /metrics\n")
	})
	return pages
}
