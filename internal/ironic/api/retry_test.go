package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// refused is an answer as gophercloud hands it on, in Ironic's shape: JSON in a string in JSON.
func refused(status int, text string) error {
	inner, _ := json.Marshal(map[string]any{"faultcode": "Client", "faultstring": text, "debuginfo": nil}) // strings always marshal
	body, _ := json.Marshal(map[string]string{"error_message": string(inner)})
	return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: body}
}

const (
	textLocked     = "Node U is locked by host H, please retry after the current operation is completed."
	textTransition = "Node U can not be updated while a state transition is in progress."
	textDuplicate  = "A node with name X already exists."
	textLimit      = "Unable to process request at this time. The concurrent action limit for provisioning has been reached."
	textWorkers    = "Requested action cannot be performed due to lack of free conductor workers."
	textConductor  = "Unable to establish connection to http://localhost:8089: HTTPConnectionPool(...)"
)

func TestRetry_which(t *testing.T) {
	t.Parallel()
	reset := &url.Error{Op: "Get", Err: syscall.ECONNRESET}
	timeout := &url.Error{Op: "Get", Err: context.DeadlineExceeded}
	// The columns are GET, PATCH, POST, a verb that fits no machine with an instance, and what else moves a machine.
	for _, tc := range []struct {
		err                          error
		get, patch, post, verb, move bool
	}{
		{refused(409, textLocked), true, true, false, true, false},
		{refused(409, textTransition), true, true, false, true, false},
		{refused(409, textDuplicate), false, false, false, false, false},
		{refused(409, "Can not delete node \"U\" while it is in provision state \"active\"."), false, false, false, false, false},
		{refused(429, ""), true, true, true, true, true},
		{refused(502, ""), true, true, false, false, false},
		{refused(503, ""), true, true, false, false, false},
		{refused(503, "Resource temporarily unavailable, please retry."), true, true, false, false, false},
		{refused(504, ""), true, true, false, false, false},
		{refused(503, textLimit), false, false, false, false, false}, // waited for by the walk
		{refused(500, textLimit), false, false, false, false, false},
		{refused(503, textWorkers), false, false, false, false, false},
		{refused(500, textConductor), true, true, false, false, false},
		{refused(500, "(sqlite3.OperationalError) database is locked"), true, true, false, false, false},
		{refused(500, "Unexpected error raised by RPC"), false, false, false, false, false},
		{refused(404, "Portgroup 1 could not be found."), true, false, false, false, false},
		{refused(404, "Portgroup 6a6c01d5-7f44-4d59-9a4c-1f8b5be4c1a1 could not be found."), false, false, false, false, false},
		{refused(400, textLocked), false, false, false, false, false},
		{refused(401, ""), false, false, false, false, false},
		{refused(403, ""), false, false, false, false, false},
		{refused(404, ""), false, false, false, false, false},
		{refused(406, ""), false, false, false, false, false},
		{reset, true, true, false, false, false},
		{timeout, true, true, false, false, false},
		{io.EOF, true, true, false, false, false},
		{io.ErrUnexpectedEOF, true, true, false, false, false},
		{syscall.EPIPE, true, true, false, false, false},
		{&url.Error{Op: "Get", Err: syscall.ECONNREFUSED}, true, true, true, true, true}, // no server has read the request
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "ironic", IsNotFound: true}}, true, true, true, true, true},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, false, false, false, false, false},
		{&url.Error{Op: "Get", Err: context.Canceled}, false, false, false, false, false},
		{errors.New("x509: certificate signed by unknown authority"), false, false, false, false, false},
	} {
		for _, request := range []struct {
			method, url string
			want        bool
			target      nodes.TargetProvisionState
		}{
			{http.MethodGet, "http://ironic.test/v1/nodes/U", tc.get, ""},
			{http.MethodPatch, "http://ironic.test/v1/nodes/U", tc.patch, ""},
			{http.MethodPost, "http://ironic.test/v1/nodes", tc.post, ""},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/states/provision", tc.verb, nodes.TargetManage},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/states/provision", tc.move, nodes.TargetDeleted},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/states/provision", tc.move, nodes.TargetRebuild},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/states/power", tc.move, ""},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/states/boot_mode", tc.move, ""},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/states/secure_boot", tc.move, ""},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/management/boot_device", tc.move, ""},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/management/inject_nmi", tc.move, ""},
			{http.MethodDelete, "http://ironic.test/v1/nodes/U/vmedia?device_types=cdrom", tc.move, ""},
			{http.MethodPut, "http://ironic.test/v1/nodes/U/maintenance", tc.patch, ""},
		} {
			if got := retryable(request.method, request.url, request.target, tc.err); got != request.want {
				t.Errorf("%s %s %s after %v: %t", request.method, request.url, request.target, tc.err, got)
			}
		}
	}
}

func TestRetry_bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tries := uint(1)
		for ; retry(t.Context(), http.MethodGet, "", nil, refused(503, ""), tries) == nil; tries++ {
		}
		if tries != Retries {
			t.Errorf("%d tries, want %d", tries, Retries)
		}
		if took := time.Since(start); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("they took %s", took)
		}
	})
}

func TestRetry_endsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		if err := retry(ctx, http.MethodGet, "", nil, refused(503, ""), 1); !errors.Is(err, context.Canceled) {
			t.Errorf("retry = %v, want the interruption", err)
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}
