package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Bounds of what a server may send. A full list of 100,000 nodes has 300 MB, a page of 1,000 nodes 3 MB
// (reference/ironic.md#lists-of-nodes).
const (
	maxBody  = 64 << 20  // bytes of one answer
	maxList  = 512 << 20 // bytes of all pages of a list
	maxPages = 2000
)

// ErrTooLarge is the cause of an error which says that a server sends more than any real one has.
var ErrTooLarge = errors.New("the server, or a proxy before it, is broken")

// bounded is the body of an answer, whose reading fails after maxBody bytes.
type bounded struct {
	io.ReadCloser
	left int64
}

// Bound makes the reading of an answer fail with ErrTooLarge after maxBody bytes.
func Bound(resp *http.Response) {
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxBody}
}

// Read reads at most as much as is left.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d MiB: %w", maxBody>>20, ErrTooLarge)
	}
	p = p[:min(int64(len(p)), b.left+1)]
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d MiB: %w", maxBody>>20, ErrTooLarge)
	}
	return n, err
}

// Listing counts the pages of a list, so that a server that always names a next page does not keep its reader for ever. Its zero value is
// ready for use.
type Listing struct {
	seen  map[string]bool
	pages int
	bytes int
}

// Add counts a page with the length of its objects, and returns ErrTooLarge if the list becomes longer than any real one. next
// identifies the page after it; empty: this is the last one. again reports that next has been read before.
func (l *Listing) Add(bytes int, next string) (again bool, err error) {
	l.pages++
	l.bytes += bytes
	switch {
	case l.bytes > maxList:
		return false, fmt.Errorf("the list has more than %d MiB: %w", maxList>>20, ErrTooLarge)
	case next != "" && l.pages >= maxPages:
		return false, fmt.Errorf("the list has more than %d pages: %w", maxPages, ErrTooLarge)
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	again = l.seen[next]
	l.seen[next] = true
	return again, nil
}
