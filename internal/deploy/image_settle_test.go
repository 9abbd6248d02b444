package deploy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// imageServer is the server of a live ISO, without a socket.
type imageServer struct {
	mu       sync.Mutex
	modified time.Time     // Last-Modified; zero: not told
	etag     string        // ETag
	ahead    time.Duration // of its clock before ours
	status   int           // zero: 200
	location string        // Location of a redirect
	down     bool
	looks    int
	strayed  bool // a request went to another address
}

// RoundTrip implements http.RoundTripper.
func (s *imageServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.down || r.Method != http.MethodHead {
		return nil, errors.New("connection refused")
	}
	resp := &http.Response{StatusCode: max(s.status, http.StatusOK), Header: http.Header{}, Body: http.NoBody, Request: r}
	resp.Header.Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	if !s.modified.IsZero() {
		resp.Header.Set("Last-Modified", s.modified.UTC().Format(http.TimeFormat))
	}
	if s.etag != "" {
		resp.Header.Set("ETag", s.etag)
	}
	if s.location != "" {
		resp.Header.Set("Location", s.location)
	}
	if r.URL.Host != "images.test" {
		s.strayed = true
	}
	return resp, nil
}

// build makes the server have a new image, by its own clock.
func (s *imageServer) build(etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modified, s.etag = time.Now().Add(s.ahead), etag
}

// newSettler returns a client that sends HEAD requests for the images of a server.
func newSettler(s *imageServer) *sitetest.Client {
	return sitetest.NewClient(&fakeironic.Server{}, func(c *machine.Config) { c.Images = s })
}

// newISO is a live ISO with a token in its URL and a quiet period of ten minutes.
func newISO() bootiso.Want {
	return bootiso.Want{Artifacts: bootiso.Artifacts{URL: "http://images.test/live.iso?token=hunter2"}, Quiet: 10 * time.Minute}
}

func TestSettle_quietPeriod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server *imageServer  // nil: one that answers
		age    time.Duration // of the image on the server; zero: the server does not tell
		image  func(*bootiso.Want)
		seen   time.Duration // how long ago a run first wanted the image
		want   time.Duration
	}{
		"new":                        {age: time.Second, want: 10*time.Minute - time.Second},
		"half as old":                {age: 5 * time.Minute, want: 5 * time.Minute},
		"old":                        {age: time.Hour, want: 0},
		"no quiet period":            {age: time.Second, image: func(i *bootiso.Want) { i.Quiet = 0 }, want: 0},
		"by the clock of its server": {age: 5 * time.Minute, server: &imageServer{ahead: 3 * time.Hour}, want: 5 * time.Minute},
		"the server tells no time":   {want: 10 * time.Minute},
		"there is no such image":     {age: time.Second, server: &imageServer{status: http.StatusNotFound}, want: 10 * time.Minute},
		"no answer":                  {age: time.Second, server: &imageServer{down: true}, want: 10 * time.Minute},
		"in a file": {age: time.Second, image: func(i *bootiso.Want) {
			i.URL = "file:///srv/live.iso"
		}, want: 10 * time.Minute},
		"no time, and seen before":   {seen: 4 * time.Minute, want: 6 * time.Minute},
		"no time, and seen long ago": {seen: time.Hour, want: 0},
		"the server's time wins":     {age: time.Minute, seen: time.Hour, want: 9 * time.Minute},
		"built_at wins over the server": {age: time.Hour, image: func(i *bootiso.Want) {
			i.BuiltAt = time.Now().Add(-time.Minute)
		}, want: 9 * time.Minute},
		"built_at, no answer": {server: &imageServer{down: true}, image: func(i *bootiso.Want) {
			i.BuiltAt = time.Now().Add(-time.Minute)
		}, want: 9 * time.Minute},
		"built long ago, and copied today": {age: time.Second, image: func(i *bootiso.Want) {
			i.BuiltAt = time.Now().Add(-time.Hour)
		}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				start := time.Now()
				server, image := tc.server, newISO()
				if server == nil {
					server = &imageServer{}
				}
				if tc.age > 0 {
					server.modified = start.Add(server.ahead - tc.age)
				}
				if tc.image != nil {
					tc.image(&image)
				}
				if err := deploy.Settle(t.Context(), newSettler(server).Site, image, start.Add(-tc.seen)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tc.want {
					t.Errorf("it took %s, want %s", took, tc.want)
				}
			})
		})
	}
}

func TestSettle_changedImage(t *testing.T) {
	t.Parallel()
	for name, etag := range map[string]string{"later": "", "other content in the same second": `"2"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				server := &imageServer{}
				server.build(`"1"`)
				if etag == "" {
					time.AfterFunc(5*time.Minute, func() { server.build(`"1"`) })
				} else {
					time.AfterFunc(time.Millisecond, func() { server.build(etag) })
				}
				err := deploy.Settle(t.Context(), newSettler(server).Site, newISO(), time.Now())
				if !failure.Is(err, deploy.KindImageChanged) || !strings.Contains(err.Error(), "images.test") {
					t.Fatalf("the error is %v", err)
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the token is in %q", err)
				}
			})
		})
	}
}

func TestSettle_serverGoneAtEnd(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		server := &imageServer{}
		server.build("")
		time.AfterFunc(time.Minute, func() {
			server.mu.Lock()
			defer server.mu.Unlock()
			server.down = true
		})
		if err := deploy.Settle(t.Context(), newSettler(server).Site, newISO(), time.Now()); err != nil {
			t.Error(err)
		}
	})
}

func TestSettle_sharedWait(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		server := &imageServer{}
		server.build("")
		client, start := newSettler(server), time.Now()
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Second) // in their turn, as a parallelism lets them
				if err := deploy.Settle(t.Context(), client.Site, newISO(), time.Now()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != 10*time.Minute {
			t.Errorf("it took %s", took)
		}
		if server.looks != 2 {
			t.Errorf("%d looks at the image, want one before and one after", server.looks)
		}
	})
}

func TestSettle_interrupted(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		server := &imageServer{}
		server.build("")
		client, start := newSettler(server), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := deploy.Settle(ctx, client.Site, newISO(), time.Now()); !api.IsInterrupted(err) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestSettle_imageOfFuture(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		tomorrow := time.Now().Add(24 * time.Hour)
		declared := newISO()
		declared.BuiltAt = tomorrow
		err := deploy.Settle(t.Context(), newSettler(&imageServer{}).Site, declared, time.Now())
		if err == nil || !strings.Contains(err.Error(), "built_at ("+tomorrow.Format(time.RFC3339)+") lies in the future") {
			t.Errorf("the error is %v", err)
		}
		err = deploy.Settle(t.Context(), newSettler(&imageServer{modified: tomorrow}).Site, newISO(), time.Now())
		if err == nil || strings.Contains(err.Error(), "built_at") || !strings.Contains(err.Error(), "images.test") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A redirect would carry the token of the URL to another server: the age of the image then counts as unknown, and the log says why.
func TestSettle_followsNoRedirect(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		var log sitetest.Logbook
		server := &imageServer{
			modified: time.Now().Add(-time.Hour), status: http.StatusFound,
			location: "https://mirror.test/live.iso?token=hunter2",
		}
		client := sitetest.NewClient(&fakeironic.Server{}, log.Record, func(c *machine.Config) { c.Images = server })
		start := time.Now()
		if err := deploy.Settle(t.Context(), client.Site, newISO(), start); err != nil {
			t.Fatal(err)
		}
		ironictest.WantNear(t, "settling", time.Since(start), 10*time.Minute)
		if server.strayed || len(log.Lines("redirected to https://mirror.test/live.iso ")) == 0 || len(log.Lines("hunter2")) > 0 {
			t.Errorf("another address was asked: %t; the log: %q", server.strayed, log.Lines("live ISO"))
		}
	})
}
