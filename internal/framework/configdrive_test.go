package framework

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"
)

// packed returns the base64 of a gzip stream.
func packed(t *testing.T, content []byte) string {
	t.Helper()
	var stream bytes.Buffer
	w := gzip.NewWriter(&stream)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(stream.Bytes())
}

func TestConfigDriveContent_faults(t *testing.T) {
	t.Parallel()
	secret := "not packed"
	for name, c := range map[string]struct{ content, fault string }{
		"fine":             {packed(t, []byte("an ISO")), ""},
		"with line breaks": {packed(t, []byte("an ISO"))[:8] + "\n" + packed(t, []byte("an ISO"))[8:], ""},
		"a text":           {secret, "compressed with gzip"},
		"not compressed":   {base64.StdEncoding.EncodeToString([]byte(secret)), "run gzip first"},
		"cut":              {packed(t, []byte("an ISO"))[:16], "compressed with gzip"},
		"too large inside": {packed(t, make([]byte, MaxConfigDrive+1)), "unpacked has more than 64 MiB"},
		"too large":        {strings.Repeat("A", MaxConfigDrive), "has more than 63 MiB"},
	} {
		got := driveFault(c.content)
		if (c.fault == "") != (got == "") || !strings.Contains(got, c.fault) || strings.Contains(got, secret) {
			t.Errorf("%s: %q, want %q", name, got, c.fault)
		}
	}
}
