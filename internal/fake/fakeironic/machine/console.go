package machine

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Console is a console that Ironic has started for a machine.
type Console struct {
	token string // of a graphical console
}

// Graphical reports whether a console interface shows the screen of a machine. Ironic ends such a console by itself.
func Graphical(console string) bool { return strings.HasSuffix(console, "-graphical") }

// NewConsole returns a console that has been started now.
func NewConsole() *Console { return &Console{token: rand.Text()} }

// Info returns console_info of a console interface. port is that of a serial console.
func (c *Console) Info(console, uuid string, port any) api.Ordered {
	switch {
	case Graphical(console):
		token := "None" // of a console that nothing has started
		if c != nil {
			token = c.token
		}
		path := url.PathEscape("websockify?node=" + uuid + "&token=" + token)
		path = strings.NewReplacer("=", "%3D", "&", "%26").Replace(path)
		return api.Ordered{{"type", "vnc"}, {"url", "http://127.0.0.1:6090/vnc_auto.html?path=" + path}}
	case console == "ipmitool-socat":
		return api.Ordered{{"type", "socat"}, {"url", fmt.Sprintf("tcp://127.0.0.1:%v", port)}}
	case console == "ipmitool-shellinabox":
		return api.Ordered{{"type", "shellinabox"}, {"url", fmt.Sprintf("http://127.0.0.1:%v", port)}}
	}
	return api.Ordered{}
}
