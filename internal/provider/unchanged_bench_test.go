package provider_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// manyInstances is a session with hosts in its fake Ironic, as after an apply and a refresh.
func manyInstances(b *testing.B, n int) (*session, []map[string]any, []*instance) {
	b.Helper()
	s := startSession(b, nil)
	configs, hosts := make([]map[string]any, n), make([]*instance, n)
	for i := range n {
		configs[i] = map[string]any{
			"name": fmt.Sprintf("host-%d", i), "driver": "fake-hardware", "target_state": "enroll", "resource_class": "baremetal",
			"driver_info": map[string]any{"deploy_kernel": "http://images.example.com/kernel"},
			"properties":  map[string]any{"cpus": "64", "memory_mb": "262144"},
			"ports":       map[string]any{fmt.Sprintf("52:54:00:00:%02x:%02x", i/256, i%256): map[string]any{}},
			"traits":      []any{"CUSTOM_A"}, "driver_info_wo": map[string]any{"redfish_password": "secret"}, "driver_info_wo_version": "1",
		}
		made, diagnostics := s.apply("metal_host", configs[i], nil)
		if failed(diagnostics) {
			b.Fatal(describe(diagnostics))
		}
		hosts[i] = made
	}
	for i, made := range hosts { // after all writes: each write invalidates the lists that a refresh uses
		hosts[i] = s.read(made)
	}
	return s, configs, hosts
}

func BenchmarkPlanUnchanged(b *testing.B) {
	const hosts = 100
	s, configs, instances := manyInstances(b, hosts)
	requests := make([]*tfprotov6.PlanResourceChangeRequest, hosts)
	for i := range requests {
		requests[i] = s.planRequest("metal_host", configs[i], instances[i])
	}
	for name, plan := range map[string]tfprotov6.ResourceServer{"noted": s.server, "framework": s.server.ProviderServer} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, req := range requests {
					if resp, err := plan.PlanResourceChange(b.Context(), req); err != nil || len(resp.Diagnostics) > 0 {
						b.Fatalf("plan: %v %v", err, resp)
					}
				}
			}
		})
	}
}

func BenchmarkRefresh(b *testing.B) {
	s, _, instances := manyInstances(b, 100)
	for name, read := range map[string]tfprotov6.ResourceServer{"noted": s.server, "framework": s.server.ProviderServer} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, i := range instances {
					resp, err := read.ReadResource(b.Context(), &tfprotov6.ReadResourceRequest{
						TypeName: i.kind, CurrentState: i.state,
						Private: i.private, CurrentIdentity: i.identity,
					})
					if err != nil || len(resp.Diagnostics) > 0 {
						b.Fatalf("read: %v %v", err, resp)
					}
				}
			}
		})
	}
}
