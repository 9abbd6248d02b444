package bmc

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// ISOServer serves live ISOs to Ironic, which fetches them, and to the provider, which reads their age. It has an image for
// every name that ends in ".iso"; the first line of the image is that name.
type ISOServer struct {
	url string

	mu    sync.Mutex
	built map[string]time.Time
	late  map[string]bool // images to build at the next request
	looks map[string]int  // HEAD requests of the provider
	at    map[look]func() // what to do at a look
	delay time.Duration
}

// look is a HEAD request of the provider for an image: its first, second and so on.
type look struct {
	image string
	n     int
}

// ServeISO starts a server for a test on 127.0.0.1. A real Ironic must run on the same machine.
func ServeISO(t testing.TB) *ISOServer {
	t.Helper()
	site.SkipUnlessAsked(t)
	s := &ISOServer{built: map[string]time.Time{}, late: map[string]bool{}, looks: map[string]int{}, at: map[look]func(){}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// URL returns the URL of an image.
func (s *ISOServer) URL(name string) string { return s.url + "/" + name + ".iso" }

// Build sets the age of an image to zero. An image that was never built is an hour old.
func (s *ISOServer) Build(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built[name] = time.Now()
}

// BuildLate is Build at the next request for the image, so that a test does not depend on how long the CLI takes to send it.
func (s *ISOServer) BuildLate(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[name] = true
}

// Built returns the time of an image's last build; zero if it was never built.
func (s *ISOServer) Built(name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.built[name]
}

// Delay makes GET requests wait.
func (s *ISOServer) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Looks returns how often the provider read the age of an image.
func (s *ISOServer) Looks(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks[name]
}

// AtLook calls a function when the provider reads the age of an image for the nth time, before it gets the answer. So a test does not
// depend on how long the quiet period is.
func (s *ISOServer) AtLook(name string, n int, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[look{name, n}] = do
}

// countLook counts a request of the provider for the age of an image.
func (s *ISOServer) countLook(name string) {
	s.mu.Lock()
	s.looks[name]++
	do := s.at[look{name, s.looks[name]}]
	s.mu.Unlock()
	if do != nil {
		do()
	}
}

func (s *ISOServer) serve(w http.ResponseWriter, r *http.Request) {
	name, found := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".iso")
	if !found {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodHead && strings.HasPrefix(r.UserAgent(), "terraform-provider-metal/") {
		s.countLook(name)
	}
	s.mu.Lock()
	if s.late[name] {
		s.built[name] = time.Now()
		delete(s.late, name)
	}
	built, delay := s.built[name], s.delay
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
	http.ServeContent(w, r, name+".iso", built, bytes.NewReader(append([]byte(name+"\n"), make([]byte, 64<<10)...)))
}
