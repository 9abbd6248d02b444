package fakehttp

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// shutdownTime is the time-out of requests in progress when a fake stops.
const shutdownTime = 5 * time.Second

// Serve answers requests on the listeners until ctx ends. It closes the listeners, and returns an error if one of them fails before.
func Serve(ctx context.Context, fake http.Handler, listeners ...net.Listener) error {
	server := &http.Server{Handler: fake, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { served <- server.Serve(listener) }()
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	return server.Shutdown(grace)
}

// Secure adds TLS to a listener, with a certificate for its address of a new CA. It writes the certificate of the CA to a file.
func Secure(listener net.Listener, caFile string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	authority, err := New()
	if err != nil {
		return nil, err
	}
	config, err := authority.ServerConfig(host, "localhost", "127.0.0.1", "::1")
	if err != nil {
		return nil, err
	}
	return tls.NewListener(listener, config), os.WriteFile(caFile, authority.PEM(), 0o600)
}

// Main runs a program until it is interrupted, and prints the error with which it ends.
func Main(ctx context.Context, name string, run func(ctx context.Context, args []string) error) (code int) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, name+":", err)
	return 1
}
