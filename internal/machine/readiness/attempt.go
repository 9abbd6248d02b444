package readiness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// HTTP is a request and the answer that is wanted.
type HTTP struct {
	URL      string
	Status   []int          // the wanted ones; nil: 200 to 299
	Contains string         // text in the body; "": any body
	CAs      *x509.CertPool // nil: those of the system
}

// maxBody is how much of an answer is searched for a text.
const maxBody = 1 << 20

// Target says what is checked, for people. Notes on nodes have it. Of a URL it shows only the server: the rest may have secrets.
func (c Check) Target() string {
	if c.HTTP == nil {
		return "TCP port " + c.TCP
	}
	return rest.Origin(c.HTTP.URL)
}

func (c Check) attempt(ctx context.Context) *problem {
	if c.HTTP != nil {
		return c.HTTP.attempt(ctx, c.dial())
	}
	conn, err := c.dial()(ctx, "tcp", c.TCP)
	if err != nil {
		return problemOf(err)
	}
	_ = conn.Close() // that it was there is enough
	return nil
}

func (c Check) dial() Dial {
	if c.Dial != nil {
		return c.Dial
	}
	return (&net.Dialer{}).DialContext
}

// attempt sends the request, on a connection of its own. It follows no redirect: the status of the first answer counts.
func (h *HTTP) attempt(ctx context.Context, dial Dial) *problem {
	client := http.Client{
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: h.CAs, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL, nil)
	if err != nil {
		return &problem{cause: Other, fact: errURL.Error()}
	}
	req.Header.Set("User-Agent", "terraform-provider-metal")
	resp, err := client.Do(req)
	if err != nil {
		return problemOf(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it matters
	if !h.wants(resp.StatusCode) {
		return h.otherStatus(resp.StatusCode)
	}
	if h.Contains == "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case bytes.Contains(body, []byte(h.Contains)):
		return nil
	case err != nil:
		return problemOf(err)
	}
	return h.otherText(len(body) == maxBody)
}

func (h *HTTP) wants(status int) bool {
	if h.Status == nil {
		return status/100 == 2
	}
	return slices.Contains(h.Status, status)
}

var errURL = errors.New("not an http:// or https:// URL with a host")

// CheckAddress returns an error, without the address, unless it is a host and a port.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || host == "" || wrong != nil || n == 0 {
		return errors.New("the value is not HOST:PORT, such as 198.51.100.11:22, [2001:db8::11]:22 or web-1.example.com:443")
	}
	return nil
}

// ReadCAs returns the certificates in a file, together with those of the system.
func ReadCAs(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM format", file)
	}
	return pool, nil
}
