package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// sector is the beginning of an image, with bytes at some offsets.
func sector(at map[int]byte) []byte {
	data := make([]byte, 512)
	for offset, value := range at {
		data[offset] = value
	}
	return data
}

var (
	withTable = sector(map[int]byte{510: 0x55, 511: 0xaa})
	fat       = sector(map[int]byte{16: 2, 21: 0xf8, 510: 0x55, 511: 0xaa})
	qcow2     = sector(map[int]byte{0: 'Q', 1: 'F', 2: 'I', 3: 0xfb, 510: 0x55, 511: 0xaa})
	bare      = sector(nil)
)

func TestNeedsFormat(t *testing.T) {
	t.Parallel()
	const byName, byTable = "is a raw image, by its name", "is a raw image: it begins with a partition table"
	for name, tt := range map[string]struct {
		image deploy.Image
		head  []byte
		want  string
	}{
		"raw with a table":           {deploy.Image{URL: "https://i/d.img"}, withTable, byTable},
		"named raw":                  {deploy.Image{URL: "http://i/d.RAW?token=x"}, nil, byName},
		"named raw, and is":          {deploy.Image{URL: "http://i/d.raw"}, withTable, byTable},
		"named raw, without a table": {deploy.Image{URL: "http://i/d.raw"}, bare, ""},
		"qcow2 named img":            {deploy.Image{URL: "http://i/noble.img"}, qcow2, ""},
		"img that does not answer":   {deploy.Image{URL: "http://i/d.img"}, nil, ""},
		"a file system":              {deploy.Image{URL: "http://i/d.img"}, fat, ""},
		"a short file":               {deploy.Image{URL: "http://i/d.img"}, withTable[:300], ""},
		"with disk_format":           {deploy.Image{URL: "http://i/d.raw", DiskFormat: "raw"}, withTable, ""},
		"partition image":            {deploy.Image{URL: "http://i/d.raw", Type: deploy.ImagePartition}, withTable, ""},
		"Glance knows":               {deploy.Image{URL: "glance://0f3c1d5e-5f0f-4b43-8a2d-3e1f1d7d8f11"}, nil, ""},
		"the conductor reads":        {deploy.Image{URL: "file:///images/d.raw"}, nil, ""},
		"a registry":                 {deploy.Image{URL: "oci://r/d.raw"}, nil, ""},
	} {
		if got := tt.image.NeedsFormat(tt.head); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// contents is the server of images, without a socket.
type contents struct {
	mu    sync.Mutex
	files map[string][]byte
	slow  bool
	asked []string
}

func (c *contents) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	data, slow := c.files[r.URL.Path], c.slow
	c.asked = append(c.asked, fmt.Sprintf("%s %s %s%s", r.Method, r.URL, r.Header.Get("Range"), r.Header.Get("X-Auth-Token")+
		r.Header.Get("Authorization")))
	c.mu.Unlock()
	if slow {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	resp := &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}
	switch {
	case r.URL.Path == "/moved.img":
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", "http://elsewhere.test/d.img")
	case data != nil:
		resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(io.MultiReader(bytes.NewReader(data), restOfImage{})) // it ignores Range
	}
	return resp, nil
}

// restOfImage is the rest of an image that must not be read.
type restOfImage struct{}

func (restOfImage) Read([]byte) (int, error) { return 0, errors.New("the whole image is read") }

func TestLookAtFormat_asksOncePerImage(t *testing.T) {
	t.Parallel()
	server := &contents{files: map[string][]byte{"/a.img": withTable, "/b.img": qcow2}}
	client := sitetest.NewClient(&fakeironic.Server{}, func(c *machine.Config) { c.Images = server })
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			for name, want := range map[string]bool{
				"a.img": true, "b.img": false, "c.img": false, "d.qcow2": false, "e": false,
				"moved.img": false,
			} {
				if got := deploy.LookAtFormat(t.Context(), client.Site,
					deploy.Image{URL: "http://images.test/" + name}); (got != "") != want {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
	all.Wait()
	if len(server.asked) != 4 {
		t.Errorf("the server was asked %d times: %q", len(server.asked), server.asked)
	}
	for _, asked := range server.asked {
		if asked[:len("GET http://images.test/")] != "GET http://images.test/" || asked[len(asked)-len(" bytes=0-511"):] != " bytes=0-511" {
			t.Errorf("asked %q", asked)
		}
	}
}

func TestLookAtFormat_serverOutOfReach(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		server := &contents{slow: true}
		client := sitetest.NewClient(&fakeironic.Server{}, func(c *machine.Config) { c.Images = server })
		start := time.Now()
		for i := range 50 {
			if got := deploy.LookAtFormat(t.Context(), client.Site,
				deploy.Image{URL: fmt.Sprintf("http://images.test/%d.img", i)}); got != "" {
				t.Errorf("image %d: %q", i, got)
			}
		}
		if took := time.Since(start); took > 10*time.Second || len(server.asked) != 1 {
			t.Errorf("%d requests took %s", len(server.asked), took)
		}
	})
}
