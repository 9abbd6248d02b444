package acctest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// ISOServer serves live ISOs: to Ironic, which fetches what machines boot, and to the provider, which asks how old they are.
// Every name that ends in ".iso" is there.
type ISOServer struct {
	url string

	mu    sync.Mutex
	built map[string]time.Time
	late  map[string]bool // to be built
	looks map[string]int
	delay time.Duration
}

// ServeISO starts a server for a test, on this machine, where the real Ironic of a test runs too.
func ServeISO(t testing.TB) *ISOServer {
	t.Helper()
	skipUnlessAsked(t)
	s := &ISOServer{built: map[string]time.Time{}, late: map[string]bool{}, looks: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// URL is where an image is.
func (s *ISOServer) URL(name string) string { return s.url + "/" + name + ".iso" }

// Build makes an image anew. One that is never built is an hour old.
func (s *ISOServer) Build(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built[name] = time.Now()
}

// BuildLate makes an image anew at the moment at which somebody first asks for it: tests of what happens then depend less on
// how long a CLI takes to get there.
func (s *ISOServer) BuildLate(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[name] = true
}

// Built is when an image was built; zero if it never was.
func (s *ISOServer) Built(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.built[name]
}

// Delay makes everybody who fetches an image wait.
func (s *ISOServer) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Looks is how often the provider has asked for the age of an image.
func (s *ISOServer) Looks(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks[name]
}

func (s *ISOServer) serve(w http.ResponseWriter, r *http.Request) {
	name, found := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".iso")
	if !found {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	if s.late[name] {
		s.built[name] = time.Now()
		delete(s.late, name)
	}
	built, delay := s.built[name], s.delay
	if r.Method == http.MethodHead && strings.HasPrefix(r.UserAgent(), "terraform-provider-metal/") {
		s.looks[name]++
	}
	s.mu.Unlock()
	if built.IsZero() {
		built = time.Now().Add(-time.Hour).Truncate(time.Hour)
	}
	if r.Method == http.MethodGet {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, name+".iso", built, bytes.NewReader(make([]byte, 64<<10)))
}
