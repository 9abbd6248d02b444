package ironic

import (
	"regexp"
	"testing"
)

// All versions of this provider must use the same record as the lock of an Ironic.
func TestUUID_ofLock(t *testing.T) {
	t.Parallel()
	if got := UUID5("2e9c9d9e-6f0a-4a9e-9d0e-6d6574616c21", "admission"); got != "42e2bf37-4c6a-5603-8cc8-9b085c33ea2d" {
		t.Errorf("the lock is %s", got)
	}
	// The example of RFC 9562, A.4: www.example.com in the namespace of DNS names.
	if got := UUID5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com"); got != "2ed6657d-e927-568b-95e1-2665a8aea6a2" {
		t.Errorf("uuid5 is %s", got)
	}
}

func TestUUID_random(t *testing.T) {
	t.Parallel()
	one, other := NewUUID(), NewUUID()
	if one == other || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(one) {
		t.Errorf("UUIDs are %s and %s", one, other)
	}
}
