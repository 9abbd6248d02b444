package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type imageServer struct {
	address string // scheme and host
	given   bool   // the user has asked for it, by the URL of an image
	status  int    // of its answer
	err     error  // why there is none
}

// Bounds of the requests to servers of images.
const (
	mostServers  = 5
	imageTimeout = 5 * time.Second
)

// lookAtImages asks the server of the given image for its head, or those of the images that machines run for any answer. Neither
// credentials nor queries, which may be signatures, are sent.
func lookAtImages(ctx context.Context, o Options, nodes []ironic.Node) (servers []imageServer) {
	client := &http.Client{Transport: o.Images, Timeout: imageTimeout} // it follows redirects: it sends nothing that is secret
	if o.Image != "" {
		return []imageServer{askServer(ctx, client, o.Image, true)}
	}
	var addresses []string
	for i := range nodes {
		for _, key := range []string{"image_source", "boot_iso"} {
			source, _ := nodes[i].InstanceInfo[key].(string)
			if u, err := url.Parse(source); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
				addresses = append(addresses, u.Scheme+"://"+u.Host)
			}
		}
	}
	slices.Sort(addresses)
	for i, address := range slices.Compact(addresses) {
		if i == mostServers {
			break
		}
		servers = append(servers, askServer(ctx, client, address, false))
	}
	return servers
}

// askServer sends a HEAD to a URL without its credentials and query.
func askServer(ctx context.Context, client *http.Client, image string, given bool) imageServer {
	u, err := url.Parse(image)
	if err != nil {
		return imageServer{address: "the image", given: given, err: errors.New("its URL is not valid")}
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	server := imageServer{address: u.Scheme + "://" + u.Host, given: given}
	ask, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		server.err = err
		return server
	}
	resp, err := client.Do(ask)
	if err != nil {
		server.err = err
		return server
	}
	defer resp.Body.Close() //nolint:errcheck // a HEAD has none
	server.status = resp.StatusCode
	return server
}

// checkImages says whether the servers of images answer here. Ironic may be in another network.
func checkImages(s *sight) []Check {
	const name = "image server"
	const hint = " Only whether Ironic's conductors, and with direct deployments the ramdisks, reach it counts: ask from a conductor, too."
	if len(s.images) == 0 {
		c := Check{Name: name, Result: OK, Fact: "No machine runs an image from a web server."}
		if s.nodes.err != nil {
			c.Result, c.Fact = Unknown, "The machines, whose images name it, could not be listed."
		}
		c.Next = "To check a server, give the URL of an image: --image-url URL."
		return []Check{c}
	}
	var checks []Check
	for _, server := range s.images {
		c := Check{Name: name, Result: OK, Fact: fmt.Sprintf("%s answers here.", server.address)}
		switch {
		case server.err != nil:
			c.Result, c.Fact, c.Next = Warning, fmt.Sprintf("%s does not answer here: %v.", server.address, because(server.err)),
				"Check the host, and whether it is reachable from here."+hint
		case server.given && server.status >= http.StatusBadRequest:
			c.Result, c.Fact = Warning, fmt.Sprintf("%s answers to the URL of the image with %d %s.", server.address, server.status,
				http.StatusText(server.status))
			c.Next = "Check the path of the image. It was asked for without credentials and without its query." + hint
		}
		checks = append(checks, c)
	}
	return checks
}

// because returns the cause of a failed request without its URL.
func because(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}
