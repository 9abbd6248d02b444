package failure_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// The advice is about the server that is at fault, and about the setting with its address.
func TestExplain_connection(t *testing.T) {
	t.Parallel()
	untrusted := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	unknown := &net.DNSError{Err: "no such host", Name: "k", IsNotFound: true}
	status := func(code int) error { return &api.StatusError{Status: code, Message: "No", Foreign: true} }
	keystone := func(err error) error {
		return &api.ConnectError{
			Stage: api.AtKeystone, URL: "https://k/v3", Place: "cloud site in /c.yaml",
			Setting: "auth_url of cloud site in /c.yaml", Err: err,
		}
	}
	found := func(err error) error {
		return &api.ConnectError{Stage: api.AtEndpoint, URL: "https://i/v1/", Found: "region north, interface public", Err: err}
	}
	const auth, endpoint = "auth_url of cloud site in /c.yaml", "endpoint (METAL_ENDPOINT)"
	for name, tt := range map[string]struct {
		err    error
		want   []string
		unlike []string
	}{
		"settings": {
			&api.ConnectError{Stage: api.AtSettings, Err: errors.New("OS_PASSWORD is not set")},
			[]string{"OS_PASSWORD is not set.", "No request was sent"},
			[]string{"Keystone", endpoint},
		},
		"credentials": {keystone(status(401)), []string{"Keystone at https://k/v3 refuses the credentials of cloud site " +
			"in /c.yaml: No", "a user without a role in the project", "openstack token issue"}, []string{endpoint, "METAL_USERNAME"}},
		"token": {
			&api.ConnectError{Stage: api.AtKeystone, URL: "https://k/v3", Token: true, Err: status(404)},
			[]string{"has expired or was revoked", "OS_TOKEN"},
			[]string{endpoint},
		},
		"not Keystone": {
			keystone(status(404)),
			[]string{"The server that answers there is not Keystone", auth},
			[]string{endpoint},
		},
		"malformed": {
			keystone(status(400)),
			[]string{"Check user, domain, project and scope of cloud site"},
			[]string{endpoint},
		},
		"Keystone's proxy": {
			keystone(status(503)),
			[]string{"Is Keystone running there", "api_timeout", auth},
			[]string{endpoint},
		},
		"Keystone down": {keystone(syscall.ECONNREFUSED), []string{"Keystone at https://k/v3 does not answer: " +
			"connection refused.", "Is Keystone running there", auth, "api_timeout"}, []string{endpoint, "Is Ironic"}},
		"Keystone's host": {keystone(unknown), []string{"No such host: check the host name k in " + auth}, []string{endpoint}},
		"Keystone's CA": {keystone(untrusted), []string{
			"Keystone's certificate is not trusted here",
			"cacert_file (or OS_CACERT, or cacert in clouds.yaml)", auth,
		}, []string{endpoint}},
		"Keystone's mystery": {
			keystone(errors.New("strange")),
			[]string{"Keystone at https://k/v3: strange", "Check " + auth},
			[]string{endpoint},
		},
		"no scope": {
			&api.ConnectError{Stage: api.AtCatalog, URL: "https://k/v3"},
			[]string{"OS_PROJECT_NAME and OS_PROJECT_DOMAIN_NAME, or OS_SYSTEM_SCOPE=all"},
			[]string{endpoint},
		},
		"no Ironic": {&api.ConnectError{
			Stage: api.AtCatalog, URL: "https://k/v3",
			Catalog: api.Catalog{Type: "baremetal", Types: []string{"compute"}},
		}, []string{
			"no service of type baremetal. It has: compute",
			"Register Ironic in the catalog", endpoint,
		}, []string{"region"}},
		"several places": {
			&api.ConnectError{
				Stage: api.AtCatalog, URL: "https://k/v3",
				Catalog: api.Catalog{
					Type: "baremetal", Interface: "public", Several: true, Types: []string{"baremetal"},
					Has: []api.Place{{Region: "north", Interface: "public"}, {Region: "south", Interface: "public"}},
				},
			},
			[]string{
				"has several services of type baremetal with interface public. It has: public in region north, public in region south",
				"Set region (OS_REGION_NAME",
			},
			[]string{endpoint},
		},
		"no such place": {&api.ConnectError{
			Stage: api.AtCatalog, URL: "https://k/v3",
			Catalog: api.Catalog{
				Type: "baremetal", Region: "east", Interface: "public", Types: []string{"baremetal"},
				Has: []api.Place{{Region: "north", Interface: "public"}},
			},
		}, []string{"in region east with interface public. It has: " +
			"public in region north", "Set region (OS_REGION_NAME) and interface (OS_INTERFACE)"}, nil},
		"Ironic of the catalog": {
			found(syscall.ECONNREFUSED),
			[]string{
				"Ironic at https://i/v1/ (region north, interface public of the service catalog) does not answer",
				"Keystone works. Is Ironic running there", "api_timeout", "region (OS_REGION_NAME) and interface (OS_INTERFACE)",
			},
			[]string{"OS_PASSWORD", auth},
		},
		"CA of Ironic": {
			found(untrusted),
			[]string{"Keystone's certificate is trusted, but Ironic's is not. Set cacert_file"},
			[]string{auth},
		},
		"no Ironic there": {
			found(status(404)),
			[]string{"Keystone works. The URL is from its service catalog", "OS_REGION_NAME"},
			[]string{auth},
		},
		"no Ironic there, HTML": {
			found(errors.New("the answer is not JSON")),
			[]string{"Keystone works. The URL is from its service catalog"},
			[]string{auth},
		},
		"Ironic of the endpoint": {
			&api.ConnectError{Stage: api.AtEndpoint, URL: "https://i/v1/", Err: syscall.ECONNREFUSED},
			[]string{"Is Ironic running there", endpoint, "api_timeout"},
			[]string{"Keystone", "OS_REGION_NAME"},
		},
		"password without Keystone": {
			&api.ConnectError{Stage: api.AtEndpoint, URL: "https://i/v1/", Err: status(401)},
			[]string{"METAL_USERNAME"},
			[]string{"OS_AUTH_URL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tt.err, fmt.Errorf("read node x: %w", tt.err)} {
				_, detail := failure.Explain("read node x", err)
				for _, text := range tt.want {
					if !strings.Contains(strings.ToLower(detail), strings.ToLower(text)) {
						t.Errorf("%q does not say %q", detail, text)
					}
				}
				for _, text := range tt.unlike {
					if strings.Contains(detail, text) {
						t.Errorf("%q speaks of %q", detail, text)
					}
				}
			}
		})
	}
}
