package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// counts is how often each request was made.
type counts map[request]int

// of sums up a class.
func (c counts) of(wanted class) int {
	sum := 0
	for r, n := range c {
		if r.class == wanted {
			sum += n
		}
	}
	return sum
}

// all is the number of all requests.
func (c counts) all() int { return c.of(own) + c.of(shared) + c.of(lock) }

// proxy stands between a provider and an Ironic, and counts what the provider asks.
type proxy struct {
	mu     sync.Mutex
	counts counts
}

// startProxy serves a proxy in front of an Ironic on a free local port. stop ends it.
func startProxy(ctx context.Context, ironic *url.URL) (p *proxy, endpoint string, stop func(), err error) {
	p = &proxy{counts: counts{}}
	endpoint, stop, err = serve(ctx, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(ironic)
			r.Out.Host = r.In.Host // Ironic writes its links with it, so that they lead through the proxy, too
		},
		ModifyResponse: func(answer *http.Response) error {
			p.count(ironic, answer.Request, answer.StatusCode)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			p.count(ironic, r, http.StatusBadGateway)
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	return p, endpoint, stop, err
}

func (p *proxy) count(ironic *url.URL, r *http.Request, status int) {
	u := *r.URL
	u.Path = strings.TrimPrefix(u.Path, ironic.Path)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[classify(r.Method, &u, status)]++
}

// take returns the counts since the last call.
func (p *proxy) take() counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := maps.Clone(p.counts)
	clear(p.counts)
	return taken
}

// serve listens on a free local port. stop ends it and its connections.
func serve(ctx context.Context, handler http.Handler) (endpoint string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // later measurements would be wrong
		}
	}()
	return "http://" + listener.Addr().String(), func() { _ = server.Close(); <-ended }, nil
}
