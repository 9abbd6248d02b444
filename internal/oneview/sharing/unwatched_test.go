package sharing_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// refusing answers every request with a status once on is set.
type refusing struct {
	http.RoundTripper
	status int
	on     *bool
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if *r.on {
		body := io.NopCloser(strings.NewReader(`{"errorCode": "AUTHN_AUTH_FAIL", "message": "no rights"}`))
		return &http.Response{StatusCode: r.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: req},
			nil
	}
	return r.RoundTripper.RoundTrip(req)
}

// Rights that end while a profile is applied are no failure of the profile; a later run continues with it. Before the appliance has the
// profile, they are an ordinary error.
func TestPrepareIsUnwatched(t *testing.T) {
	t.Parallel()
	for status := range map[int]bool{http.StatusUnauthorized: true, http.StatusForbidden: true} {
		inVirtualTime(t, func(t *testing.T) {
			s := newSite(t, 1)
			ends := true
			through := func(next http.RoundTripper) http.RoundTripper { return refusing{next, status, &ends} }
			spec := sharing.ProfileSpec{NodeID: s.nodes[0], Record: func(uri string) { ends = uri != "" }}
			if _, err := s.pool(t, through).Prepare(t.Context(), spec); err == nil || failure.IsUnwatched(err) {
				t.Errorf("%d before the profile exists: %v", status, err)
			}
			ends = false
			if _, err := s.pool(t, through).Prepare(t.Context(), spec); !failure.IsUnwatched(err) {
				t.Errorf("%d while it is applied: %v", status, err)
			}
			ends = false
			spec.Record = nil
			applied, err := s.pool(t).Prepare(t.Context(), spec)
			if err != nil || !applied.Reused {
				t.Errorf("%d, and rights again: %+v, %v", status, applied, err)
			}
		})
	}
}
