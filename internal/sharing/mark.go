package sharing

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// mark returns the text that this package writes into the description of its profiles: the profile's name and its node. By the mark a
// later run recognizes the profile of a run that was killed before it could write driver_info. The mark in a copy of the profile does
// not count, because the copy has another name.
func mark(name, nodeID string) string {
	return fmt.Sprintf("[terraform-provider-metal: %s for Ironic node %s]", name, nodeID)
}

// withMark returns a description in which the mark of a profile replaces that of its former name.
func withMark(description, formerName, name, nodeID string) string {
	description = strings.TrimSpace(strings.ReplaceAll(description, mark(formerName, nodeID), ""))
	return strings.TrimSpace(description + " " + mark(name, nodeID))
}

var (
	markPattern = regexp.MustCompile(`\[terraform-provider-metal: .* for Ironic node ([0-9a-f-]{36})\]`)
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`) // distinguishes a UUID from a name
)

// madeFor reports whether a profile has the mark of a node.
func madeFor(p *oneview.Profile, nodeID string) bool {
	return nodeID != "" && strings.Contains(p.Description, mark(p.Name, nodeID))
}

// markedNode returns the UUID of the node whose mark a profile has; empty if it has none.
func markedNode(p *oneview.Profile) string {
	if found := markPattern.FindStringSubmatch(p.Description); found != nil && madeFor(p, found[1]) {
		return found[1]
	}
	return ""
}
