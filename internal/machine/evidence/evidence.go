// Package evidence looks up what the site knows about the cause of a failure: the inventory, ports and BIOS settings of the machine, its
// agent, the conductors, the server of the image. Each fact is a sentence or two that say what it proves, and what it does not. Nothing is
// changed, and no machine is touched.
package evidence

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
)

// Look is where facts are looked up.
type Look struct {
	Ironic *ironic.Client
	Images http.RoundTripper // of the server of an image; not asked if Image is ""
	Image  string            // the URL that the user has configured; "": another client may have chosen that of the node
	Began  time.Time         // when Ironic accepted the operation, by its clock; zero: not known
}

// within is how long all requests of a failure may take: a message must not wait for a site that does not answer.
const within = 20 * time.Second

// lookups are what is looked up for a reason: each asks for at most three things.
var lookups = map[string]func(ctx context.Context, l Look, n *ironic.Node) []string{
	"root-device-none": lookAtDisks, "root-device-too-small": lookAtDisks,
	"callback-timeout": lookAtBoot, "clean-timeout": lookAtBoot, "service-timeout": lookAtBoot, "inspection-timeout": lookAtBoot,
	"rescue": lookAtBoot, "inspection-lookup": lookAtBoot, "inspection-macs": lookAtBoot, "no-port": lookAtBoot,
	"image-404": lookAtImage, "image-unreachable": lookAtImage, "image-link": lookAtImage,
	"conductor-restarted": lookAtConductors, "no-workers": lookAtConductors, "node-locked": lookAtConductors,
	"bios-setting": lookAtBIOS,
}

// Of looks up facts about a failure in at most three requests. Without a reason there are none. What the site does not answer is missing.
func (l Look) Of(ctx context.Context, n *ironic.Node, why *reason.Reason) []string {
	if why == nil || lookups[why.ID] == nil || ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return lookups[why.ID](ctx, l, n)
}

// Boot is Of for a machine whose ramdisk Ironic waits for.
func (l Look) Boot(ctx context.Context, n *ironic.Node) []string {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return lookAtBoot(ctx, l, n)
}

// LastError returns the last error in the history of a node, without secrets; "" if there is none, or if it cannot be read. Since Ironic
// 31, a reading of the power state clears last_error, and Ironic 39 does when, after a failure, it switches off a machine that is off.
func LastError(ctx context.Context, client *ironic.Client, id string) string {
	if version, err := client.Microversion(ctx); err != nil || version < api.VersionHistory {
		return ""
	}
	history, err := client.History(ctx, id)
	if err != nil {
		return ""
	}
	return LastOf(history)
}

// LastOf returns the last error in a history; "" if there is none.
func LastOf(history []ironic.Event) string {
	for _, event := range slices.Backward(history) {
		if event.IsError() && !strings.HasSuffix(event.Type, "_end") { // _end events only say that the operation was aborted
			return event.Event
		}
	}
	return ""
}

func lookAtDisks(ctx context.Context, l Look, n *ironic.Node) []string {
	found, err := l.Ironic.Inventory(ctx, n.UUID)
	if err != nil {
		return nil
	}
	return Disks(n, found)
}

// lookAtBoot reads the node, its ports and its inventory: a poll has not what its agent has reported.
func lookAtBoot(ctx context.Context, l Look, n *ironic.Node) (facts []string) {
	if inspected := strings.HasPrefix(n.ProvisionState, "inspect"); !inspected { // then Ironic takes no heartbeat
		if now, err := l.Ironic.Node(ctx, n.UUID); err == nil {
			facts = Agent(now, l.Began)
		}
	}
	ports, err := l.Ironic.Ports(ctx, n.UUID)
	if err != nil {
		return facts
	}
	found, err := l.Ironic.Inventory(ctx, n.UUID)
	if err != nil {
		return facts
	}
	return append(facts, Cards(n, ports, found)...)
}

func lookAtConductors(ctx context.Context, l Look, n *ironic.Node) []string {
	all, err := l.Ironic.Conductors(ctx)
	if err != nil {
		return nil
	}
	return Conductors(n, all)
}

func lookAtBIOS(ctx context.Context, l Look, n *ironic.Node) []string {
	settings, err := l.Ironic.BIOS(ctx, n.UUID)
	if err != nil {
		return nil
	}
	return Settings(n.LastError, settings)
}

func lookAtImage(ctx context.Context, l Look, _ *ironic.Node) []string {
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, l.Image, nil)
	if err != nil || ask.URL.Scheme != "http" && ask.URL.Scheme != "https" {
		return nil
	}
	ask.Header.Set("User-Agent", l.Ironic.UserAgent())
	answer, err := rest.NewClient(l.Images, within/4).Do(ask)
	if err != nil {
		return Image(l.Image, 0, err)
	}
	_ = answer.Body.Close() // a HEAD has none
	return Image(l.Image, answer.StatusCode, nil)
}
