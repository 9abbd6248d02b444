package rest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	copy(p, strings.Repeat(" ", len(p)))
	return len(p), nil
}

func TestBound_largeAnswersAreErrors(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	for name, tt := range map[string]struct {
		body  io.Reader
		large bool
	}{
		"small": {strings.NewReader("{}"), false}, "just fits": {io.LimitReader(endless{}, most), false},
		"a byte more": {io.LimitReader(endless{}, most+1), true}, "endless": {endless{}, true},
	} {
		resp := &http.Response{Body: io.NopCloser(tt.body)}
		rest.Bound(resp)
		n, err := io.Copy(io.Discard, resp.Body)
		if errors.Is(err, rest.ErrTooLarge) != tt.large || !tt.large && err != nil || n > most+1 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

func TestListing_endlessListsAreErrors(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{0: 2000, 100 << 10: 2000, 50 << 20: 11} {
		var l rest.Listing
		pages := 0
		for err := error(nil); err == nil; pages++ {
			_, err = l.Add(size, fmt.Sprint(pages))
		}
		if pages != want {
			t.Errorf("pages of %d bytes: stopped after %d, want %d", size, pages, want)
		}
	}
	var l rest.Listing
	for i, next := range []string{"a", "b", "a"} {
		if again, err := l.Add(1, next); err != nil || again != (i == 2) {
			t.Errorf("page %d: again %t, %v", i, again, err)
		}
	}
}
