package state

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Address is the address of an instance of a resource. Key is empty, or [1], or ["a"].
type Address struct{ Resource, Key string }

func (a Address) String() string { return a.Resource + a.Key }

// ParseAddress splits an address of an instance.
func ParseAddress(text string) Address {
	resource, key, found := strings.Cut(text, "[")
	if !found {
		return Address{Resource: resource}
	}
	return Address{resource, "[" + key}
}

// KeyOf writes a key of count or for_each.
func KeyOf(value cty.Value) string {
	if value.Type() == cty.String {
		return fmt.Sprintf("[%q]", value.AsString())
	}
	n, _ := value.AsBigFloat().Int64()
	return fmt.Sprintf("[%d]", n)
}

// KeyValue returns the key as a value; cty.NilVal if there is none.
func (a Address) KeyValue() cty.Value {
	inner := strings.TrimSuffix(strings.TrimPrefix(a.Key, "["), "]")
	if text, err := strconv.Unquote(inner); err == nil {
		return cty.StringVal(text)
	}
	n, err := strconv.Atoi(inner)
	if err != nil {
		return cty.NilVal
	}
	return cty.NumberIntVal(int64(n))
}

// Compare sorts instances as a CLI does: those of a count by number.
func Compare(a, b Address) int {
	if a.Resource != b.Resource || len(a.Key) == len(b.Key) {
		return strings.Compare(a.String(), b.String())
	}
	if strings.HasPrefix(a.Key, `["`) {
		return strings.Compare(a.Key, b.Key)
	}
	return len(a.Key) - len(b.Key)
}

// KindName returns the kind of a resource.
func KindName(resource string) string {
	_, kind, _ := Split(resource)
	return kind
}

// Split returns the module of a resource, such as module.fleet, which is empty for the root module, its kind, and its name.
func Split(resource string) (module, kind, name string) {
	parts := strings.Split(resource, ".")
	n := 0
	for parts[n] == "module" && len(parts) > n+3 {
		n += 2
	}
	return strings.Join(parts[:n], "."), strings.Join(parts[n:len(parts)-1], "."), parts[len(parts)-1]
}
