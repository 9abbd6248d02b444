package api_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// hostile answers lists of nodes itself, and lets the fake answer the rest.
func hostile(list func(r *http.Request) io.Reader) *ironic.Client {
	fake := fleet(1)
	return newClient(fake, func(cfg *api.Config) {
		cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/v1/nodes" && r.URL.Path != "/v1/ports" {
				return fake.RoundTrip(r)
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(list(r)), Request: r}, nil
		})
	})
}

func TestList_isBounded(t *testing.T) {
	t.Parallel()
	page := 0
	for name, tt := range map[string]struct {
		list func(r *http.Request) io.Reader
		says string
	}{
		"fresh markers": {func(*http.Request) io.Reader {
			page++
			return strings.NewReader(fmt.Sprintf(`{"nodes": [{"uuid": "n%d"}], "next": "http://ironic.test/v1/nodes?marker=n%d"}`, page,
				page))
		}, "more than 2000 pages"},
		"the same marker": {func(*http.Request) io.Reader {
			return strings.NewReader(`{"nodes": [{"uuid": "n"}], "next": "http://ironic.test/v1/nodes?marker=n"}`)
		}, "refer to each other in a circle"},
		"an endless page": {func(*http.Request) io.Reader {
			return io.MultiReader(strings.NewReader(`{"nodes": ["`), endless{})
		}, "more than 64 MiB"},
	} {
		_, err := hostile(tt.list).ShortNodes(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, rest.ErrTooLarge) && api.MayPass(err) {
			t.Errorf("%s: waiting goes on after %v", name, err)
		}
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
