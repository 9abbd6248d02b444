package terraformtest

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// outputText prints a value as "output" does.
func outputText(value cty.Value, pad string) string {
	of := value.Type()
	if value.IsNull() {
		if of.IsPrimitiveType() {
			return "to" + of.FriendlyName() + "(null)"
		}
		return "null"
	}
	inner := pad + "  "
	switch {
	case of == cty.String && strings.Contains(value.AsString(), "\n"):
		open := "<<EOT\n"
		if pad != "" {
			open = "<<-EOT\n"
		}
		return open + pad + strings.ReplaceAll(value.AsString()+"\nEOT", "\n", "\n"+pad)
	case of.IsPrimitiveType():
		return text(value, 0)
	}
	open, end, isMap := "[", "]", of.IsObjectType() || of.IsMapType()
	if isMap {
		open, end = "{", "}"
	}
	var out strings.Builder
	for it := value.ElementIterator(); it.Next(); {
		switch key, element := it.Element(); {
		case isMap:
			fmt.Fprintf(&out, "%s%q = %s\n", inner, key.AsString(), outputText(element, inner))
		default:
			fmt.Fprintf(&out, "%s%s,\n", inner, outputText(element, inner))
		}
	}
	if out.Len() > 0 {
		open, end = open+"\n", pad+end
	}
	made := open + out.String() + end
	if of.IsObjectType() || of.IsTupleType() {
		return made
	}
	kind, _, _ := strings.Cut(of.FriendlyName(), " ") // such as "list of string"
	return "to" + kind + "(" + made + ")"
}
