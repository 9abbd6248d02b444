package host

import (
	"context"
	"net/netip"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// report is what the machine of a discovered node says of itself. Ironic does not know its BMC otherwise.
type report struct {
	BMCs      []string
	addresses []string // MAC addresses of all network cards
}

// withReported adds to the conflicts of a candidate the discovered nodes whose machines report the BMC of the candidate. It takes back
// the registration of the candidate if these are the only conflicts.
func withReported(ctx context.Context, site *machine.Site, l *lists, who Candidate, found []conflict) ([]conflict, error) {
	known := catalogOf(site)
	wanted := entryOf(who)
	if _, err := netip.ParseAddr(wanted.BMC.Host()); err != nil { // no BMC, or one with a name, which no machine reports
		return found, nil //nolint:nilerr // no address
	}
	reports, err := known.readReports(ctx, l)
	var more []conflict
	if err == nil {
		more = reportedConflicts(wanted, found, known.unclaimed(l), reports)
	}
	if len(found) == 0 && (err != nil || len(more) > 0) {
		NotMade(site, who.UUID)
	}
	return append(found, more...), err
}

// reportedConflicts returns the entries whose machines report the BMC of a wanted node. If the wanted node shares its name or a MAC address
// with one that reports this BMC, there are none: other machines then share the BMC. If the wanted node has MAC addresses and the
// machine has others, the conflict is doubtful. Of several nodes that Ironic has made for one machine, it returns the one with ports.
func reportedConflicts(wanted *entry, found []conflict, entries []*entry, reports map[string]*report) (more []conflict) {
	for _, e := range entries {
		r := reports[e.node.UUID]
		if r == nil || !slices.Contains(r.BMCs, wanted.BMC.Host()) {
			continue
		}
		if slices.ContainsFunc(found, func(x conflict) bool { return x.node.UUID == e.node.UUID }) {
			return nil
		}
		known := slices.Concat(r.addresses, e.Addresses)
		shares := slices.ContainsFunc(wanted.Addresses, func(address string) bool { return slices.Contains(known, address) })
		more = append(more, conflict{
			entry: e, what: identity.BMC, value: wanted.BMC.String(), by: wanted,
			doubtful: len(wanted.Addresses) > 0 && !shares,
		})
	}
	all := slices.Clone(more)
	return slices.DeleteFunc(more, func(ghost conflict) bool {
		return len(ghost.Addresses) == 0 && slices.ContainsFunc(all, func(x conflict) bool {
			return slices.ContainsFunc(x.Addresses, func(address string) bool {
				return slices.Contains(reports[ghost.node.UUID].addresses, address)
			})
		})
	})
}

// unclaimed is untouched for callers without c.mu.
func (c *catalog) unclaimed(l *lists) []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.untouched(l)
}

// readReports reads the inventories of the discovered nodes without a BMC, once for all callers with the same lists.
func (c *catalog) readReports(ctx context.Context, l *lists) (map[string]*report, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	if l.reports != nil {
		return l.reports, nil
	}
	reports := map[string]*report{}
	for _, e := range l.entries {
		if !found.Likely(e.node) || e.node.Extra[notes.KeyEnrolled] != nil || len(driverinfo.BMCHosts(e.node.DriverInfo)) > 0 {
			continue
		}
		inventory, err := c.client.Inventory(ctx, e.node.UUID)
		if err != nil && !api.IsNotFound(err) && !api.IsForbidden(err) {
			return nil, err
		}
		if err == nil && inventory != nil {
			reports[e.node.UUID] = &report{BMCs: inventory.BMCHosts(), addresses: inventory.Addresses()}
		}
	}
	l.reports = reports
	return reports, nil
}
