package machine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// IndicatorChoice says which indicator of a machine is meant.
type IndicatorChoice struct {
	Component string // such as system, chassis or disk; empty: system, or chassis if the system has none
	Name      string // Ironic's, also without the @ and the component; empty: the only one of the component
}

// pick returns the indicator that is meant, or why there is none, as the end of a sentence that begins with "it".
func (c IndicatorChoice) pick(all []ironic.Indicator, state ironic.IndicatorState) (name, refused string) {
	component := c.Component
	if component == "" && c.Name == "" {
		component = "chassis"
		if slices.ContainsFunc(all, func(i ironic.Indicator) bool { return i.Component == "system" }) {
			component = "system"
		}
	}
	var found []string
	for _, i := range all {
		short, _, _ := strings.Cut(i.Name, "@")
		if (component == "" || i.Component == component) && (c.Name == "" || c.Name == i.Name || c.Name == short) && !i.ReadOnly &&
			slices.Contains(i.States, state) {
			found = append(found, i.Name)
		}
	}
	switch {
	case len(found) == 0:
		return "", fmt.Sprintf("it has no indicator %s that can be switched to %s", strings.TrimSpace(component+" "+c.Name), state)
	case len(found) > 1:
		return "", fmt.Sprintf("it has several such indicators: %s. Choose one with --indicator", strings.Join(found, ", "))
	}
	return found[0], ""
}

// Indicate lets an indicator of the machine show a state. It works in every provision state and while the site is frozen: it waits only
// while the node is locked.
func (m *Machine) Indicate(ctx context.Context, choice IndicatorChoice, state ironic.IndicatorState, timeout time.Duration) (err error) {
	ctx, traced := m.begin(ctx, "indicator")
	defer func() { m.end(traced, err) }()
	all, err := m.site.Ironic.Indicators(ctx, m.node.UUID)
	if err == nil {
		name, refused := choice.pick(all, state)
		if refused != "" {
			return m.refuse("%s", refused)
		}
		err = m.UnlockedWithin(ctx, timeout, func() error { return m.site.Ironic.SetIndicator(ctx, m.node.UUID, name, state) })
	}
	if NoIndicators(err) {
		return m.refuse("its management interface, %s, cannot switch indicators", m.node.ManagementInterface)
	}
	return err
}

// NoIndicators reports whether Ironic has refused a request because a driver has no indicators (reference/ironic.md#indicators).
func NoIndicators(err error) bool {
	return api.IsStatus(err, http.StatusBadRequest, "does not support get_supported_indicators") ||
		api.IsStatus(err, http.StatusBadRequest, "does not support set_indicator_state")
}
