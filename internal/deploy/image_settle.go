package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

func checkBuilt(image bootiso.Want, now time.Time) error {
	if image.BuiltAt.Sub(now) > time.Minute {
		return fmt.Errorf("built_at (%s) lies in the future", image.BuiltAt.Format(time.RFC3339))
	}
	return nil
}

// KindImageChanged is the kind of an error which says that an image has changed since the plan.
const KindImageChanged failure.Kind = "image changed"

// ImageChanged says that the server has another image at a URL than the configuration describes.
func ImageChanged(host string) *failure.Error {
	return &failure.Error{
		Kind: KindImageChanged, Fact: fmt.Sprintf("the live ISO on %s changed during its quiet period", host),
		Advice: "No machine was restarted with it. Wait until the image has been built, then run terraform plan again.",
	}
}

// newImage is what tells one live ISO that settles from another.
type newImage struct {
	url     string
	builtAt time.Time
	quiet   time.Duration
}

// imageRegister are the new images of a run. Each is awaited once and checked twice, regardless of the number of machines that boot it.
type imageRegister struct {
	mu    sync.Mutex
	known map[newImage]*routine.Shared[*failure.Error]
}

func imagesOf(site *machine.Site) *imageRegister {
	return machine.Kept(site, func(*machine.Site) *imageRegister {
		return &imageRegister{known: map[newImage]*routine.Shared[*failure.Error]{}}
	})
}

// Settle waits until the quiet period of an image has ended. It sends a HEAD request for the image before and after, and returns
// an error of KindImageChanged if the image has changed in between. seen is when a run first wanted this image; the period counts from then
// if neither the image nor its server gives a time. The machines that boot an image share the first caller's seen.
func Settle(ctx context.Context, site *machine.Site, image bootiso.Want, seen time.Time) error {
	known, key := imagesOf(site), newImage{image.URL, image.BuiltAt, image.Quiet}
	known.mu.Lock()
	s := known.known[key]
	if s == nil {
		s = &routine.Shared[*failure.Error]{}
		known.known[key] = s
	}
	known.mu.Unlock()
	changed, err := s.Get(ctx, func(ctx context.Context) (*failure.Error, error) { return settle(ctx, site, image, seen) })
	if changed != nil {
		return changed
	}
	return err
}

// settle is Settle for the caller that waits for all. changed says that the image has changed.
func settle(ctx context.Context, site *machine.Site, image bootiso.Want, seen time.Time) (changed *failure.Error, err error) {
	before := headImage(ctx, site, image.URL)
	left := image.Quiet - before.age
	switch {
	case !image.BuiltAt.IsZero():
		left = image.Quiet - time.Since(image.BuiltAt)
	case !before.known:
		left = image.Quiet - time.Since(seen)
	}
	if left <= 0 {
		return nil, nil //nolint:nilnil // it has settled
	}
	if err := checkBuilt(image, time.Now()); err != nil {
		return nil, err
	}
	if left > image.Quiet+time.Minute {
		return nil, fmt.Errorf("the live ISO on %s was last modified in the future (Last-Modified), by that server's own clock",
			before.host)
	}
	site.Ironic.Logger().InfoContext(ctx, "waiting until the live ISO has settled", "host", before.host, "for", left.Round(time.Second))
	if err := rest.Sleep(ctx, left); err != nil {
		return nil, err
	}
	if after := headImage(ctx, site, image.URL); before.known && after.known && after.mark != before.mark {
		return ImageChanged(after.host), nil
	}
	return nil, nil //nolint:nilnil // it has settled
}

type imageHead struct {
	known bool          // the server gave a time
	age   time.Duration // since the image was last modified, by the server's clock
	mark  string        // changes when the content changes
	host  string
}

// headImage asks an image's server how old the image is. It never fails, because the computer that runs Terraform need not reach that
// server.
func headImage(ctx context.Context, site *machine.Site, address string) imageHead {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return imageHead{}
	}
	g := imageHead{host: u.Host}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return g
	}
	req.Header.Set("User-Agent", site.Ironic.UserAgent())
	resp, err := rest.NewClient(site.Config().Images, 0).Do(req)
	if err != nil {
		var redirect *rest.RedirectError
		if errors.As(err, &redirect) {
			site.Ironic.Logger().WarnContext(ctx, "could not get the age of the live ISO: "+redirect.Error())
			return g
		}
		site.Ironic.Logger().DebugContext(ctx, "could not get the age of the live ISO", "host", g.host)
		return g
	}
	defer resp.Body.Close() //nolint:errcheck // a HEAD request has no body to read
	modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if err != nil || resp.StatusCode != http.StatusOK {
		return g
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	g.known, g.age, g.mark = true, now.Sub(modified), resp.Header.Get("Last-Modified")+resp.Header.Get("ETag")
	return g
}
