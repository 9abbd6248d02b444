package deploy_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/readiness"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/tracingtest"
)

func TestTrace_hasEachWaitVerbStateAndCheck(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, reserved := sitetest.Reserved(t, 3*time.Minute)
		spans := tracingtest.NewSpans()
		ctx, end := spans.Under(t.Context(), "create metal_deployment")
		if _, _, err := sitetest.Run(fake, sitetest.UpTo(1)).Deploy(ctx, id, sitetest.Debian("1"),
			sitetest.OnceIn4h(reserved)); err != nil {
			t.Fatal(err)
		}
		check := readiness.Check{TCP: "192.0.2.1:22", Timeout: time.Hour, Dial: answersAfter(2 * time.Minute)}
		if err := check.Wait(ctx, func(string) {}); err != nil {
			t.Fatal(err)
		}
		end()
		spans.Want(t, `
create metal_deployment 11m6s
  deploy 9m3s
    admissions 0s
    state available 0s
    wait for a slot 0s
    state deploying 3m0s
    verb active 0s
    state wait call-back 3m0s
    state deploying 3m0s
    state active 3s
  ready check 2m3s
`)
		texts := strings.Join(spans.Texts(), "\n")
		for _, want := range []string{
			"metal.node.name=node-000", "metal.node.uuid=" + id, "ironic.step=deploy.deploy", "metal.limit.max_concurrent=1",
			"http.request.method=PUT", "url.path=" + ironictest.ProvisionPath(id), "http.response.status_code=202",
			"openstack.request_id=req-",
			"metal.ready_check=TCP port 192.0.2.1:22",
		} {
			if !strings.Contains(texts, want) {
				t.Errorf("the spans lack %q", want)
			}
		}
		for _, never := range []string{"cloud-config", "images/"} {
			if strings.Contains(texts, never) {
				t.Errorf("a span has %q", never)
			}
		}
	})
}

// answersAfter connects to a machine that is up after a while.
func answersAfter(booting time.Duration) readiness.Dial {
	up := time.Now().Add(booting)
	return func(context.Context, string, string) (net.Conn, error) {
		if time.Now().Before(up) {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}
		ours, theirs := net.Pipe()
		_ = theirs.Close()
		return ours, nil
	}
}

func TestTrace_tellsOfFailures(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, reserved := sitetest.Reserved(t, 3*time.Minute)
		fake.Fail = func(fakeironic.Node, string) string { return "image not found" }
		spans := tracingtest.NewSpans()
		ctx, end := spans.Under(t.Context(), "create metal_deployment")
		if _, _, err := sitetest.NewClient(fake).Deploy(ctx, id, sitetest.Debian("1"), sitetest.OnceIn4h(reserved)); err == nil {
			t.Fatal("the deployment has succeeded")
		}
		end()
		spans.Want(t, `
create metal_deployment 9m3s
  deploy 9m3s !failed
    state deploying 3m0s
    state available 0s
    verb active 0s
    state wait call-back 3m0s
    state deploying 3m0s
    state deploy failed 3s
`)
		if texts := strings.Join(spans.Texts(), "\n"); !strings.Contains(texts, "image not found") {
			t.Errorf("no span has Ironic's words:\n%s", texts)
		}
	})
}
