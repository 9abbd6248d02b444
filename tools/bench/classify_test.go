package main

import (
	"net/url"
	"testing"
)

func TestClassifyCountsARequestForWhatItIsAbout(t *testing.T) {
	t.Parallel()
	const id = "7d2ee2a9-22a8-4f3a-8a3a-0f6a3a8c7b11"
	for _, tt := range []struct {
		method, url string
		status      int
		class       class
		kind        string
	}{
		{"GET", "/", 200, shared, "GET /"},
		{"GET", "/v1", 200, shared, "GET /v1"},
		{"GET", "/v1/", 200, shared, "GET /v1"},
		{"GET", "/v1/nodes?fields=uuid,provision_state&limit=100", 200, shared, "GET /v1/nodes"},
		{"GET", "/v1/nodes/detail?limit=100&marker=" + id, 200, shared, "GET /v1/nodes/detail"},
		{"GET", "/v1/ports/detail", 200, shared, "GET /v1/ports/detail"},
		{"GET", "/v1/allocations", 200, shared, "GET /v1/allocations"},
		{"GET", "/v1/conductors", 200, shared, "GET /v1/conductors"},
		{"GET", "/v1/drivers/fake-hardware", 200, shared, "GET /v1/drivers/{id}"},
		{"POST", "/v1/nodes", 201, own, "POST /v1/nodes"},
		{"POST", "/v1/ports", 409, own, "POST /v1/ports -> 409"},
		{"GET", "/v1/nodes/" + id, 200, own, "GET /v1/nodes/{id}"},
		{"GET", "/v1/nodes/" + id + "?fields=reservation", 200, own, "GET /v1/nodes/{id}"},
		{"GET", "/v1/nodes/rack1-01", 404, own, "GET /v1/nodes/{id} -> 404"},
		{"GET", "/v1/nodes/power", 200, own, "GET /v1/nodes/{id}"},
		{"PATCH", "/v1/nodes/" + id, 200, own, "PATCH /v1/nodes/{id}"},
		{"DELETE", "/v1/nodes/" + id, 204, own, "DELETE /v1/nodes/{id}"},
		{"PUT", "/v1/nodes/" + id + "/states/provision", 202, own, "PUT /v1/nodes/{id}/states/provision"},
		{"PUT", "/v1/nodes/" + id + "/states/power", 202, own, "PUT /v1/nodes/{id}/states/power"},
		{"GET", "/v1/nodes/" + id + "/validate", 200, own, "GET /v1/nodes/{id}/validate"},
		{"GET", "/v1/nodes/" + id + "/management/boot_device", 200, own, "GET /v1/nodes/{id}/management/boot_device"},
		{"PUT", "/v1/nodes/" + id + "/traits/CUSTOM_NVME", 204, own, "PUT /v1/nodes/{id}/traits/{id}"},
		{"GET", "/v1/nodes?instance_uuid=" + id, 200, own, "GET /v1/nodes?instance_uuid={id}"},
		{"GET", "/v1/ports?node=" + id + "&fields=uuid", 200, own, "GET /v1/ports?node={id}"},
		{"GET", "/v1/ports/detail?address=52:54:00:00:00:01", 200, own, "GET /v1/ports/detail?address={id}"},
		{"GET", "/v1/allocations/web-1", 200, own, "GET /v1/allocations/{id}"},
		{"GET", "/v1/chassis", 200, lock, "GET /v1/chassis"},
		{"POST", "/v1/chassis", 201, lock, "POST /v1/chassis"},
		{"PATCH", "/v1/chassis/" + id, 200, lock, "PATCH /v1/chassis/{id}"},
		{"GET", "/v1/chassis/" + id, 404, lock, "GET /v1/chassis/{id} -> 404"},
	} {
		t.Run(tt.method+" "+tt.url, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse("http://127.0.0.1:6385" + tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := classify(tt.method, u, tt.status), (request{tt.class, tt.kind}); got != want {
				t.Errorf("classify = %+v, want %+v", got, want)
			}
		})
	}
}
