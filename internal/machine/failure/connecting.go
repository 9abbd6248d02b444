package failure

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Advice about the URL of Ironic.
const (
	endpointSetting = "endpoint (METAL_ENDPOINT)"
	notIronic       = "The server that answers there is not Ironic. Check " + endpointSetting + ": host, port, and the path before /v1."
	trustCA         = "Set cacert_file (or OS_CACERT, or cacert in clouds.yaml) to the certificate of the authority that signed it"
)

// adviseConnection returns what to do about an error of the connection: each advice is about the server, or the setting, that is at fault.
func adviseConnection(err *api.ConnectError) string {
	switch err.Stage {
	case api.AtKeystone:
		return adviseKeystone(err)
	case api.AtCatalog:
		return adviseCatalog(err)
	case api.AtEndpoint:
		return adviseEndpoint(err)
	case api.AtSettings:
	}
	return "No request was sent. The settings come from the provider block, from the OS_* variables, and from clouds.yaml."
}

func adviseKeystone(err *api.ConnectError) string {
	var status *api.StatusError
	if !errors.As(err, &status) {
		return cmp.Or(adviseLoss(err, "Keystone", err.Setting), "Check "+err.Setting+".")
	}
	if advice := advisePage(status, "Keystone", err.Setting); advice != "" {
		return advice
	}
	switch {
	case err.Token && (status.Status == http.StatusUnauthorized || status.Status == http.StatusNotFound):
		return "The token has expired or was revoked, or its user has no role in the project. A token that was given (OS_TOKEN) cannot " +
			"be renewed: get a new one, or use a password or an application credential."
	case status.Status == http.StatusUnauthorized:
		return "Keystone answers the same to a wrong user, domain or password and to a user without a role in the project or on the " +
			"system. Check user, password and scope of " + err.Place +
			"; openstack token issue must work with them."
	case status.Status == http.StatusNotFound:
		return fmt.Sprintf("The server that answers there is not Keystone, or its API is below another path. Check %s.", err.Setting)
	case status.Status == http.StatusBadRequest:
		return "Check user, domain, project and scope of " + err.Place + "."
	case status.Status >= http.StatusInternalServerError:
		return fmt.Sprintf("Is Keystone running there? To wait until it has started, set api_timeout. If the address is wrong, change %s.",
			err.Setting)
	}
	return fmt.Sprintf("Check %s, and the log of Keystone.", err.Setting)
}

// adviseCatalog returns what to do if the service catalog has no URL of Ironic where it is looked for.
func adviseCatalog(err *api.ConnectError) string {
	switch {
	case len(err.Types) == 0:
		return "Ask for a scope: OS_PROJECT_NAME and OS_PROJECT_DOMAIN_NAME, or OS_SYSTEM_SCOPE=all (project_name, project_domain_name " +
			"or system_scope in clouds.yaml)."
	case err.Several:
		return "Set region (OS_REGION_NAME, or region_name in clouds.yaml) to one of them."
	case len(err.Has) == 0:
		return "Register Ironic in the catalog, or set " + endpointSetting + " to its URL."
	}
	return "Set region (OS_REGION_NAME) and interface (OS_INTERFACE) to a pair that the catalog has, or set " + endpointSetting +
		" to Ironic's URL."
}

// adviseEndpoint returns what to do if Ironic's API is not where it is looked for.
func adviseEndpoint(err *api.ConnectError) string {
	var status *api.StatusError
	answered := errors.As(err, &status)
	if answered {
		if advice := advisePage(status, "Ironic", endpointSetting); advice != "" {
			return advice
		}
	}
	switch {
	case answered && status.Status != http.StatusNotFound && adviseStatus(status) != "":
		return adviseStatus(status)
	case err.Found != "":
		return adviseFound(err)
	case answered && status.Status == http.StatusNotFound:
		return notIronic
	}
	return cmp.Or(adviseLoss(err, "Ironic", endpointSetting), "Check "+endpointSetting+": it must be the URL of Ironic's API, such as "+
		"https://ironic.example.com:6385.")
}

// adviseFound is adviseEndpoint for a URL of the service catalog.
func adviseFound(err *api.ConnectError) string {
	const other = "Choose another URL of the catalog by region (OS_REGION_NAME) and interface (OS_INTERFACE), or set " + endpointSetting +
		" to Ironic's URL."
	switch {
	case api.IsUntrusted(err):
		return "Keystone's certificate is trusted, but Ironic's is not. " + trustCA +
			", together with the certificate of Keystone's authority."
	case api.IsConnectionLoss(err):
		return "Keystone works. Is Ironic running there, and can this machine reach it? To wait until it has started, set api_timeout. " +
			other
	}
	return "Keystone works. The URL is from its service catalog. " + other
}

// advisePage returns what to do about an answer that no service has written but a proxy or a gateway before the server; "" for others.
// The setting is the one that has the URL of the server; "" if the server has answered before.
func advisePage(status *api.StatusError, server, setting string) string {
	at, first := rest.Origin(status.URL), ""
	if setting != "" {
		first = fmt.Sprintf(" To wait until %s has started, set api_timeout. If the address is wrong, change %s.", server, setting)
	}
	switch {
	case !status.Page:
	case status.Status == http.StatusRequestEntityTooLarge:
		return fmt.Sprintf("The request has %d KiB, and the gateway or proxy at %s takes less: raise its limit (client_max_body_size of "+
			"nginx, LimitRequestBody of Apache). A large config_drive can also be a file on a web server: config_drive.url. Ironic has "+
			"not got the request.", (status.Size+1023)/1024, at)
	case status.Proxy != "" && status.Status != http.StatusUnauthorized && strings.HasPrefix(status.URL, "http:"): // else it is a tunnel
		u, _ := url.Parse(status.URL) // Ironic was asked there
		return rest.AdviseProxy(status.Proxy, u.Hostname())
	case status.Status == http.StatusForbidden:
		return fmt.Sprintf("The gateway or proxy at %s refuses the request, not %s: no role is missing. Allow %s of this path there.", at,
			server, status.Method)
	case slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status.Status):
		return fmt.Sprintf("The gateway or proxy at %s answered %d in place of %s, which runs behind it: is %s running, and does it "+
			"answer in the time that the gateway gives it (proxy_read_timeout of nginx, timeout server of HAProxy)? Then run the command "+
			"again.%s", at, status.Status, server, server, first)
	}
	return ""
}

// adviseLoss returns what to do if a server does not answer; "" for other errors. The setting is the one that has the URL of the server.
func adviseLoss(err error, server, setting string) string {
	var name *net.DNSError
	var proxied *rest.ProxyError
	switch {
	case errors.As(err, &proxied) && !api.IsUntrusted(err):
		return rest.AdviseProxy(proxied.Proxy, proxied.Host)
	case api.IsUnread(err):
		return fmt.Sprintf("Check %s. If it is right, a gateway or proxy in front of %s has spoilt the answer: see its log.", setting,
			server)
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("No such host: check the host name %s in %s.", name.Name, setting)
	case errors.As(err, &name):
		return fmt.Sprintf("The host name %s cannot be resolved. Check it in %s, and the name servers of this machine.", name.Name, setting)
	case api.IsUntrusted(err):
		return fmt.Sprintf("%s's certificate is not trusted here. %s, and check that %s names the host as the certificate does.", server,
			trustCA, setting)
	case api.IsConnectionLoss(err):
		return fmt.Sprintf("Is %s running there, and can this machine reach it? Check %s. To wait until %s has started, set api_timeout.",
			server, setting, server)
	}
	return ""
}
