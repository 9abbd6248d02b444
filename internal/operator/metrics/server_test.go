package metrics_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/metrics"
)

func TestServer_answersTwoPages(t *testing.T) {
	t.Parallel()
	server, err := metrics.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, told(t, 20, life(time.Now())...)) }()
	root := strings.TrimSuffix(server.URL(), "/metrics")
	for _, tc := range []struct {
		method, path string
		status       int
		says         string
	}{
		{http.MethodGet, "/metrics", 200, "# TYPE metal_up gauge\nmetal_up 1\n"},
		{http.MethodGet, "/metrics", 200, `metal_operation_duration_seconds_bucket{operation="deploy",le="14400"} 1`},
		{http.MethodGet, "/", 200, "/metrics"},
		{http.MethodGet, "/debug/pprof/", 404, ""},
		{http.MethodPost, "/metrics", 405, ""},
	} {
		if status, text := ask(t, tc.method, root+tc.path); status != tc.status || !strings.Contains(text, tc.says) {
			t.Errorf("%s %s: %d, %s", tc.method, tc.path, status, text)
		}
	}
	address := strings.TrimPrefix(root, "http://")
	if _, err := metrics.Listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a second server: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := metrics.Listen(t.Context(), address); err != nil {
		t.Errorf("the port is not free: %v", err)
	}
}

// ask sends a request.
func ask(t *testing.T, method, address string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}
