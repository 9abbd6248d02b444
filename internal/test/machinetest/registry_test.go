package machinetest_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// registryPort is the port of the registry, which has no TLS: Ironic falls back to HTTP.
const registryPort = "8100"

// Media types of OCI.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	emptyType    = "application/vnd.oci.empty.v1+json"
)

// registry serves each image of a folder as the artifact disks/NAME:1: an index with one raw disk image.
type registry struct{ folder string }

// descriptor describes a blob of a registry.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func describe(mediaType string, blob []byte, annotations map[string]string) descriptor {
	return descriptor{mediaType, fmt.Sprintf("sha256:%x", sha256.Sum256(blob)), len(blob), annotations}
}

// ServeHTTP implements http.Handler.
func (r registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	parts := strings.Split(strings.TrimPrefix(q.URL.Path, "/v2/disks/"), "/") // NAME/KIND/REFERENCE
	if len(parts) != 3 {
		http.NotFound(w, q)
		return
	}
	disk, err := os.ReadFile(filepath.Join(r.folder, filepath.Base(parts[0])+".img"))
	if err != nil {
		http.NotFound(w, q)
		return
	}
	empty := []byte("{}")
	manifest := encode(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "artifactType": "application/vnd.disk-image",
		"config": describe(emptyType, empty, nil),
		"layers": []any{describe("application/octet-stream", disk, map[string]string{"org.opencontainers.image.title": parts[0] + ".raw"})},
	})
	index := encode(map[string]any{
		"schemaVersion": 2, "mediaType": indexType,
		"manifests": []any{describe(manifestType, manifest, map[string]string{"disktype": "raw"})},
	})
	switch kind, reference := parts[1], parts[2]; {
	case kind == "tags":
		send(w, "application/json", encode(map[string]any{"name": "disks/" + parts[0], "tags": []string{"1"}}))
	case kind == "manifests" && strings.HasPrefix(reference, "sha256:"):
		send(w, manifestType, manifest)
	case kind == "manifests":
		send(w, indexType, index)
	default:
		send(w, "application/octet-stream", disk)
	}
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

func send(w http.ResponseWriter, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(body)))
	_, _ = w.Write(body) // a client that has gone does not matter
}

// The agent of Debian has no podman, which a bootable container needs. It writes a disk image of a registry as any other.
func TestMetal_aDiskImageOfARegistry(t *testing.T) {
	t.Parallel()
	c := startRack(t, provisioning).machine(1)
	r := c.rack
	image := fmt.Sprintf("image = { url = %q }", "oci://"+net.JoinHostPort(r.address, registryPort)+"/disks/one:1")
	drive := fmt.Sprintf("config_drive = {\n    hostname = \"first\"\n    user_data = %q\n  }", userData)
	w := r.workspace(c.host(acctest.Target("available")) + acctest.Deployment("metal_host.h.id", image, drive))
	defer acctest.Destroy(t, r.Site, w)
	r.step("inspect, clean and deploy", func() { w.Must(acctest.Apply()...) })
	r.step("boot from disk", func() { c.want(c.await("one"), "one", "first") })
	acctest.NoChanges(t, w)
}
