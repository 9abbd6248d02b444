package rest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

func TestBackoffGrowsUpToMax(t *testing.T) {
	t.Parallel()
	b := rest.Backoff{First: time.Second, Max: 10 * time.Second, Factor: 2}
	var got []time.Duration
	for range 6 {
		got = append(got, b.Next())
	}
	if want := []time.Duration{
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second,
		10 * time.Second,
	}; !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
	if far := b.After(1000); far != 10*time.Second {
		t.Errorf("after 1000 tries %s, want 10s", far)
	}
}
