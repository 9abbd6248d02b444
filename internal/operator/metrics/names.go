package metrics

// mostNames is how many values a label has at most, besides other.
const mostNames = 200

// other replaces the values for which there is no room.
const other = "other"

// Values of the label reason that are none of the table.
const (
	none    = "none"    // nothing has failed
	unknown = "unknown" // no reason has Ironic's words
)

// names are the values of a label. A value that once has room keeps it, so that no series changes its meaning.
type names map[string]bool

func (n names) of(name string) string {
	if n[name] {
		return name
	}
	if len(n) >= mostNames {
		return other
	}
	n[name] = true
	return name
}
