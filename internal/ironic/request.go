package ironic

import (
	"context"
	"maps"
	"net/http"
	"reflect"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// create creates an object with a UUID in a collection of the API. If the answer is lost, it checks whether the object exists before it
// sends the request again.
func create[T any](ctx context.Context, c *Client, in, id string, body any) (made *T, err error) {
	err = c.Create(ctx, func(ctx context.Context) error {
		made = new(T)
		return c.Request(ctx, http.MethodPost, in, body, made)
	}, func(ctx context.Context) error {
		made = new(T)
		return c.Request(ctx, http.MethodGet, in+"/"+id, nil, made)
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// given returns a body without the attributes that are not set: nil, zero or empty.
func given(body map[string]any) map[string]any {
	maps.DeleteFunc(body, func(_ string, value any) bool {
		v := reflect.ValueOf(value)
		return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	})
	return body
}

// remove deletes an object. It succeeds if the object does not exist.
func (c *Client) remove(ctx context.Context, path string) error {
	if err := c.Request(ctx, http.MethodDelete, path, nil, nil); !api.IsNotFound(err) {
		return err
	}
	return nil
}

// byNode groups a list by the UUIDs of the nodes.
func byNode[T any](all []T, node func(*T) string) map[string]*[]T {
	grouped := map[string]*[]T{}
	for i := range all {
		id := node(&all[i])
		if grouped[id] == nil {
			grouped[id] = &[]T{}
		}
		*grouped[id] = append(*grouped[id], all[i])
	}
	return grouped
}
