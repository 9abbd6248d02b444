package ironic

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // UUIDs of version 5 are defined with SHA-1
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// NewUUID returns a random UUID (RFC 9562, version 4).
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return uuid(b, 4)
}

// UUID5 returns the UUID of a name in a namespace, which is a UUID too (RFC 9562, version 5).
func UUID5(namespace, name string) string {
	space, _ := hex.DecodeString(strings.ReplaceAll(namespace, "-", "")) // callers pass constants
	sum := sha1.Sum(append(space, name...))                              //nolint:gosec // not for secrecy
	return uuid([16]byte(sum[:16]), 5)
}

// UUID8 returns bytes of the caller's choice as a UUID (RFC 9562, version 8, which keeps 122 bits of them).
func UUID8(b [16]byte) string { return uuid(b, 8) }

// IsUUID reports whether a text is a UUID.
func IsUUID(s string) bool { return uuidPattern.MatchString(s) }

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func uuid(b [16]byte, version byte) string {
	b[6], b[8] = b[6]&0x0f|version<<4, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
