package lint

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Shape says which keys an object has, with the shapes of their values. The shape of a list, map or set has only the key AnyKey; a value
// without objects has none.
type Shape map[string]Shape

// AnyKey stands for the elements of a list, map or set.
const AnyKey = "*"

// schemaFile has the shapes of the attributes of the provider, and of the inputs of its modules: by the kind of a block, such as resource,
// its type, and the attribute. make docs writes it.
//
//go:embed schema.json
var schemaFile []byte

// typed returns the shape of the values of a type; nil if it has no objects.
func typed(kind hcl.Expression) Shape {
	call, faults := hcl.ExprCall(kind)
	if faults.HasErrors() || len(call.Arguments) == 0 {
		return nil
	}
	switch inner := call.Arguments[0]; call.Name {
	case "optional":
		return typed(inner)
	case "object":
		shape := Shape{}
		pairs, _ := hcl.ExprMap(inner)
		for _, pair := range pairs {
			shape[nameOf(pair.Key)] = typed(pair.Value)
		}
		return shape
	default:
		if shape := typed(inner); shape != nil {
			return Shape{AnyKey: shape}
		}
		return nil
	}
}

func (s Shape) keys() []string { return slices.Sorted(maps.Keys(s)) }

// nearest returns the key that was probably meant: the one that has the longest part in common with what is written, of at least three
// characters and half of the shorter of the two; "" if there is none.
func (s Shape) nearest(written string) string {
	plain := func(text string) string { return strings.ReplaceAll(strings.ToLower(text), "_", "") }
	keys, part := s.keys(), plain(written)
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for size := len(part); size >= 3; size-- {
		for at := range len(part) - size + 1 {
			for _, key := range keys {
				if k := plain(key); strings.Contains(k, part[at:at+size]) && 2*size >= min(len(k), len(part)) {
					return key
				}
			}
		}
	}
	return ""
}
