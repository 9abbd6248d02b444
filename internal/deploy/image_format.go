package deploy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// NeedsFormat says why an image needs a disk_format, as the end of a sentence; "" if it needs none, or if that is not known. The ramdisk
// detects qcow2, and fails on a raw image with a partition table (reference/ironic.md#format-of-an-image). head is how the image
// begins; nil: not known.
func (i Image) NeedsFormat(head []byte) string {
	switch {
	case i.DiskFormat != "" || i.Type == ImagePartition || !fetchedByURL(i.URL):
	case partitioned(head):
		return "is a raw image: it begins with a partition table"
	case head == nil && strings.HasSuffix(strings.ToLower(imageName(i.URL)), ".raw"):
		return "is a raw image, by its name"
	}
	return ""
}

// mayNeedFormat reports whether the name of the image leaves open if it needs a format: qcow2 images are also called .img.
func (i Image) mayNeedFormat() bool {
	suffix := strings.ToLower(path.Ext(imageName(i.URL)))
	return i.DiskFormat == "" && i.Type != ImagePartition && fetchedByURL(i.URL) && (suffix == ".img" || suffix == ".raw")
}

// fetchedByURL reports whether the ramdisk fetches an image by its URL. Other images pass through the conductor, which knows their format.
func fetchedByURL(image string) bool {
	return strings.HasPrefix(image, "http://") || strings.HasPrefix(image, "https://")
}

// imageName returns the last part of the path of a URL, which has no secrets.
func imageName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

// headSize is how much of an image tells its format: the sector that may have a partition table.
const headSize = 512

// partitioned reports whether an image begins with a partition table, as the ramdisk decides it.
func partitioned(head []byte) bool {
	if len(head) < headSize || bytes.HasPrefix(head, []byte("QFI\xfb")) {
		return false
	}
	isFAT := head[16] == 2 && head[21] == 0xf8
	return head[510] == 0x55 && head[511] == 0xaa && !isFAT
}

// heads are what the plans of a run have learned from the first bytes of images.
type heads struct {
	mu     sync.Mutex
	known  map[string]*head
	silent map[string]bool // hosts that have not answered
}

func headsOf(site *machine.Site) *heads {
	return machine.Kept(site, func(*machine.Site) *heads { return &heads{known: map[string]*head{}, silent: map[string]bool{}} })
}

type head = routine.Shared[[]byte] // nil: the server has not told

// headTimeout bounds the request for the beginning of an image.
const headTimeout = 5 * time.Second

// LookAtFormat is NeedsFormat of an image that a plan deploys. It reads the beginning of the image once in a run, if its
// name leaves the format open. It never fails: the computer that runs Terraform need not reach the server of the image.
func LookAtFormat(ctx context.Context, site *machine.Site, i Image) string {
	known := headsOf(site)
	if !i.mayNeedFormat() {
		return ""
	}
	known.mu.Lock()
	h := known.known[i.URL]
	if h == nil {
		h = &head{}
		known.known[i.URL] = h
	}
	known.mu.Unlock()
	data, _ := h.Get(ctx, func(ctx context.Context) ([]byte, error) { return readHead(ctx, site, i.URL), nil })
	return i.NeedsFormat(data)
}

// readHead reads the beginning of an image; nil if its server does not send it. It asks no host that has not answered.
func readHead(ctx context.Context, site *machine.Site, address string) []byte {
	known := headsOf(site)
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || isSilent(site, req.URL.Host) {
		return nil
	}
	req.Header.Set("User-Agent", site.Ironic.UserAgent())
	req.Header.Set("Range", "bytes=0-511")
	resp, err := rest.NewClient(site.Config().Images, 0).Do(req)
	if err != nil {
		var redirect *rest.RedirectError
		known.mu.Lock()
		defer known.mu.Unlock()
		known.silent[req.URL.Host] = known.silent[req.URL.Host] || !errors.As(err, &redirect)
		site.Ironic.Logger().DebugContext(ctx, "could not look at the image", "host", req.URL.Host)
		return nil
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it matters
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, headSize))
	if err != nil {
		return nil
	}
	return data
}

func isSilent(site *machine.Site, host string) bool {
	known := headsOf(site)
	known.mu.Lock()
	defer known.mu.Unlock()
	return known.silent[host]
}
