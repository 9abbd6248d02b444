package site

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Disturbance is what a proxy does to a request.
type Disturbance struct {
	// Before and After are called before Ironic gets the request and after it has answered; nil: nothing.
	Before, After func()
	// Drop breaks the connection instead of answering: before Ironic gets the request, or afterwards if Executed is set.
	Drop, Executed bool
	// Status and Body replace the answer if Status is not zero. Ironic gets the request only if Executed is set.
	Status int
	Body   string
}

// Behind returns the site with a proxy in front of its Ironic. disturb is called for each request, with its body; nil stands for no
// disturbance.
func (s *Site) Behind(t testing.TB, disturb func(r *http.Request, body []byte) *Disturbance) *Site {
	t.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ironic := httputil.NewSingleHostReverseProxy(target)
	ironic.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // the client has gone
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		d := disturb(r, body)
		if d == nil {
			ironic.ServeHTTP(w, r)
			return
		}
		d.serve(ironic, w, r)
	}))
	t.Cleanup(server.Close)
	behind := *s
	behind.Endpoint = server.URL
	return &behind
}

// serve answers a request with the disturbance.
func (d *Disturbance) serve(ironic http.Handler, w http.ResponseWriter, r *http.Request) {
	if d.Before != nil {
		d.Before()
	}
	replaced := d.Drop || d.Status != 0
	switch {
	case replaced && d.Executed:
		ironic.ServeHTTP(httptest.NewRecorder(), r)
	case !replaced:
		ironic.ServeHTTP(w, r)
	}
	if d.After != nil {
		d.After()
	}
	if d.Drop {
		panic(http.ErrAbortHandler)
	}
	if d.Status != 0 {
		w.WriteHeader(d.Status)
		_, _ = io.WriteString(w, d.Body) // fails only if the client has gone
	}
}
