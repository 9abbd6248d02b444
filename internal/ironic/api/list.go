package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// relists is how often List starts again because the list changed between two pages.
const relists = 3

// ErrShifted says that the last object of a page was deleted before the next page was requested.
var ErrShifted = errors.New("the list changed too often while it was read")

// ErrIncomplete says that a list lacks objects that exist.
var ErrIncomplete = errors.New("the list is incomplete")

// List reads all pages of a list; key names the array in the answers. It uses only the marker of `next`, because that URL has
// Ironic's own host name, which may differ behind a proxy, and lacks most filters of the query.
func List[T any](ctx context.Context, c *Conn, path, key string, query url.Values) ([]T, error) {
	for try := 1; ; try++ {
		all, err := listOnce[T](ctx, c, path, key, query)
		if !errors.Is(err, ErrShifted) || try == relists {
			return all, err
		}
	}
}

func listOnce[T any](ctx context.Context, c *Conn, path, key string, query url.Values) (all []T, err error) {
	for page, err := range pages[T](ctx, c, path, key, query) {
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// Stream yields the objects of a list while it reads the pages, and requests a page only if the reader wants more. If the list changes
// between two pages, Stream starts again, and leaves out what it has yielded. An error ends it. id returns the UUID of an object.
func Stream[T any](ctx context.Context, c *Conn, path, key string, query url.Values, id func(*T) string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		yielded := map[string]bool{}
		for try := 1; ; try++ {
			shifted := false
			for page, err := range pages[T](ctx, c, path, key, query) {
				if shifted = errors.Is(err, ErrShifted) && try < relists; shifted {
					break
				}
				if err != nil {
					yield(nil, err)
					return
				}
				for i := range page {
					if uuid := id(&page[i]); !yielded[uuid] {
						yielded[uuid] = true
						if !yield(&page[i], nil) {
							return
						}
					}
				}
			}
			if !shifted {
				return
			}
		}
	}
}

// pages requests the pages of a list one after the other. An error ends it.
func pages[T any](ctx context.Context, c *Conn, path, key string, query url.Values) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		asked := url.Values{}
		maps.Copy(asked, query)
		var read rest.Listing
		for marker := ""; ; {
			items, next, err := page[T](ctx, c, path, key, asked, &read)
			if marker != "" && IsNotFound(err) {
				err = fmt.Errorf("list %s: %w", path, ErrShifted)
			}
			if !yield(items, err) || err != nil {
				return
			}
			if marker = next; marker == "" || len(items) == 0 {
				return
			}
			asked.Set("marker", marker)
		}
	}
}

// page requests one page of a list, and returns the marker of the next one; "" if there is none. read are the pages so far.
func page[T any](
	ctx context.Context, c *Conn, path, key string, query url.Values, read *rest.Listing,
) (items []T, marker string, err error) {
	var answer map[string]jsonRaw
	if err := c.request(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &answer); err != nil {
		return nil, "", err
	}
	var next string
	if err := errors.Join(answer[key].into(&items), answer["next"].into(&next)); err != nil {
		return nil, "", fmt.Errorf("list %s: %w", path, err)
	}
	u, err := url.Parse(next)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", path, err)
	}
	marker = u.Query().Get("marker")
	again, err := read.Add(len(answer[key]), marker)
	if err == nil && again {
		err = errors.New("its pages refer to each other in a circle. Check the server and the proxies before it")
	}
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", path, err)
	}
	return items, marker, nil
}
