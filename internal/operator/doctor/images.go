package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// imageServer is the server of the image that the user has named, and whether it answers here.
type imageServer struct {
	address string // scheme, host and port
	status  int    // of its answer
	moved   string // the server to which it redirects; "": it does not
	err     error  // why there is no answer
}

const (
	imageTimeout = 5 * time.Second // of the request to a server of images
	mostServers  = 5               // that a report names
)

// lookAtImage asks the server of an image for its head. It sends neither credentials nor the query, which may be a signature, and follows
// no redirect: only the user says which servers are asked. Those of the images on nodes are chosen by whoever may deploy there.
func lookAtImage(ctx context.Context, o Options) *imageServer {
	u, err := url.Parse(o.Image)
	if err != nil {
		return &imageServer{address: "the image", err: errors.New("its URL is not valid")}
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	server := &imageServer{address: rest.Origin(o.Image)}
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		server.err = err
		return server
	}
	resp, err := rest.NewClient(o.Images, imageTimeout).Do(ask)
	if redirect, is := errors.AsType[*rest.RedirectError](err); is {
		server.status, server.moved = redirect.Status, redirect.To()
		return server
	}
	if server.err = err; err != nil {
		return server
	}
	defer resp.Body.Close() //nolint:errcheck // a HEAD has none
	server.status = resp.StatusCode
	return server
}

// imageServers returns the web servers of the images that machines run.
func imageServers(nodes []ironic.Node) []string {
	var servers []string
	for i := range nodes {
		for _, key := range []string{"image_source", "boot_iso"} {
			source, _ := nodes[i].InstanceInfo[key].(string)
			if u, err := url.Parse(source); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
				servers = append(servers, rest.Origin(source))
			}
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers)
}

// checkImages says whether the server of the named image answers here. Ironic may be in another network.
func checkImages(s *sight) []Check {
	const hint = " Only whether Ironic's conductors, and with direct deployments the ramdisks, reach it counts: ask from a conductor, too."
	const name = "image server"
	if s.image == nil {
		return []Check{unasked(s)}
	}
	c := Check{Name: name, Result: OK, Fact: fmt.Sprintf("%s answers here.", s.image.address)}
	switch {
	case s.image.err != nil:
		c.Result, c.Fact, c.Next = Warning, fmt.Sprintf("%s does not answer here: %v.", s.image.address, because(s.image.err)),
			"Check the host, and whether it is reachable from here."+hint
	case s.image.moved != "":
		c.Fact = fmt.Sprintf("%s answers here, and redirects to %s, which was not asked.", s.image.address, s.image.moved)
		c.Next = "To check that server, too, give the URL of the image there: --image-url URL."
	case s.image.status >= http.StatusBadRequest:
		c.Result, c.Fact = Warning, fmt.Sprintf("%s answers to the URL of the image with %d %s.", s.image.address, s.image.status,
			http.StatusText(s.image.status))
		c.Next = "Check the path of the image. It was asked for without credentials and without its query." + hint
	}
	return []Check{c}
}

// unasked names the servers of images that were not asked, and says how to ask them.
func unasked(s *sight) Check {
	servers := imageServers(s.nodes.value)
	c := Check{
		Name: "image server", Result: OK, Fact: "No machine runs an image from a web server.",
		Next: "To check a server, give the URL of an image, or of the server: --image-url URL.",
	}
	switch {
	case s.nodes.err != nil:
		c.Result, c.Fact = Unknown, "The machines, whose images name it, could not be listed."
	case len(servers) > 0:
		c.Result, c.Details = Unknown, servers[:min(mostServers, len(servers))]
		c.Fact = fmt.Sprintf("Machines run images of %s. None was asked: tenants who deploy choose these addresses.",
			words.Count(len(servers), "server"))
	}
	return c
}

// because returns the cause of a failed request without its URL.
func because(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}
