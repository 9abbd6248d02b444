package ironic

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// NewImage is a live ISO that machines are about to be booted with.
type NewImage struct {
	URL     string
	BuiltAt time.Time     // zero: what the image's server says (Last-Modified)
	Quiet   time.Duration // how long after that the image counts as settled
}

// ImageChangedError says that an image is not the one that was planned with any more.
type ImageChangedError struct{ Host string }

// Error names the server.
func (e *ImageChangedError) Error() string {
	return fmt.Sprintf("the live ISO on %s changed while it was given time to settle", e.Host)
}

// images are the new images of a run: one wait and two looks for each, however many machines want it.
type images struct {
	mu    sync.Mutex
	known map[NewImage]*settling
}

type settling struct {
	done chan struct{}
	err  error
}

// Settle waits until the quiet period of an image is over. It looks at the image before and after, if it can: one that
// changes meanwhile is an ImageChangedError. An image whose server answers nothing useful to HEAD is taken as it is.
func (c *Client) Settle(ctx context.Context, image NewImage) error {
	c.images.mu.Lock()
	s, begun := c.images.known[image]
	if !begun {
		if c.images.known == nil {
			c.images.known = map[NewImage]*settling{}
		}
		s = &settling{done: make(chan struct{})}
		c.images.known[image] = s
	}
	c.images.mu.Unlock()
	if !begun {
		s.err = c.settle(ctx, image)
		close(s.done)
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) settle(ctx context.Context, image NewImage) error {
	before := c.lookAt(ctx, image.URL)
	left := image.Quiet - before.age
	if !image.BuiltAt.IsZero() {
		left = image.Quiet - time.Since(image.BuiltAt)
	} else if !before.known {
		return nil
	}
	if left <= 0 {
		return nil
	}
	if most := image.Quiet + time.Minute; left > most && image.BuiltAt.IsZero() {
		return fmt.Errorf("the live ISO on %s was last modified in the future (Last-Modified), by that server's own clock", before.host)
	} else if left > most {
		return fmt.Errorf("built_at (%s) lies in the future", image.BuiltAt.Format(time.RFC3339))
	}
	c.cfg.Logger.InfoContext(ctx, "waiting until the live ISO has settled", "host", before.host, "for", left.Round(time.Second))
	if err := sleep(ctx, left); err != nil {
		return err
	}
	if after := c.lookAt(ctx, image.URL); before.known && after.known && after.mark != before.mark {
		return &ImageChangedError{Host: after.host}
	}
	return nil
}

// glance is what a look at an image showed.
type glance struct {
	known bool          // the server gave a time
	age   time.Duration // since the image was last modified, by the server's own clock
	mark  string        // changes with the content
	host  string
}

// lookAt asks an image's server for the image's age. It never fails: what runs Terraform need not reach that server.
func (c *Client) lookAt(ctx context.Context, address string) glance {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return glance{}
	}
	g := glance{host: u.Host}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return g
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	client := http.Client{Transport: c.cfg.Images}
	resp, err := client.Do(req)
	if err != nil {
		c.cfg.Logger.DebugContext(ctx, "cannot look at the live ISO", "host", g.host)
		return g
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was read
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
