package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
)

// Times say how long operations take.
type Times map[Operation]ByClass

// ByClass is how long an operation takes, by resource class; "" is for all classes without an entry.
type ByClass map[string]time.Duration

// Of returns how long an operation takes on a machine of a class.
func (t Times) Of(o Operation, class string) (d time.Duration, known bool) {
	if d, known = t[o][class]; !known {
		d, known = t[o][""]
	}
	return d, known
}

// Or returns the times, and those of others for what they leave open.
func (t Times) Or(others Times) Times {
	all := make(Times)
	for _, some := range []Times{others, t} {
		for o, classes := range some {
			if _, anyClass := classes[""]; anyClass || all[o] == nil {
				all[o] = ByClass{}
			}
			maps.Copy(all[o], classes)
		}
	}
	return all
}

// KindUnknown is the kind of an error which says what a forecast would have to know.
const KindUnknown fault.Kind = "forecast unknown"

// Lacks returns the error of KindUnknown, with a line for each fact in its text and in About.
func Lacks(lines []string) error {
	return &fault.Error{Kind: KindUnknown, About: lines, Fact: "the forecast would have to know:\n  " + strings.Join(lines, "\n  ")}
}

// unknown returns an error if the input lacks something.
func (in *Input) unknown() error {
	needs := map[[2]string][]string{} // by operation and class
	var lines []string
	l := in.Settings.Limit
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Machine == nil {
			continue
		}
		for _, leg := range s.Legs {
			for _, o := range leg {
				if _, known := in.Times.Of(o, s.Machine.Class); !known {
					needs[[2]string{string(o), s.Machine.Class}] = append(needs[[2]string{string(o), s.Machine.Class}], s.Address)
				}
			}
		}
		if u := s.Machine.Unknown; u != "" && len(s.Legs) > 0 && l.Max > 0 && (len(l.Exempt) > 0 || l.Scope != "" && l.Scope != "all") {
			lines = append(lines, fmt.Sprintf("which node %s gets (%s): scope and exempt_boot_interfaces of provisioning_limit "+
				"depend on it", s.Address, u))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(needs), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }) {
		of := "machines whose class is not known before the apply"
		if key[1] != "" {
			of = "machines of class " + key[1]
		}
		lines = append(lines, fmt.Sprintf("how long %q of %s takes (%s): give --%s TIME", key[0], of, Few(needs[key]), key[0]))
	}
	if len(lines) > 0 {
		return Lacks(lines)
	}
	return nil
}

// Few names three of some things.
func Few(all []string) string {
	all = slices.Compact(slices.Clone(all))
	if len(all) > 3 {
		return strings.Join(all[:3], ", ") + fmt.Sprintf(" and %d more", len(all)-3)
	}
	return strings.Join(all, ", ")
}
