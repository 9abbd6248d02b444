package fakeironic

import (
	"net/http"
	"strings"
)

// validation answers GET /v1/nodes/{node}/validate: for each interface whether the node is fit for it.
func (s *Server) validation(c *call, n *node) (reply, error) {
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	var out ordered
	for _, kind := range interfaceKinds {
		if kind == "vendor" || kind == "firmware" && c.minor < 86 {
			continue
		}
		result := ordered{{"result", true}}
		if reason := s.interfaceFault(n, kind); reason != "" {
			result = ordered{{"result", false}, {"reason", reason}}
		}
		out = append(out, member{kind, result})
	}
	return ok(http.StatusOK, out), nil
}

// interfaceFault says why an interface of the node cannot work, "" when it can.
func (s *Server) interfaceFault(n *node, kind string) string {
	if strings.HasPrefix(n.uses(kind), "no-") {
		return "Driver " + n.str("driver") + " does not support " + kind + " (disabled or not implemented)."
	}
	switch kind {
	case "power", "management":
		return n.bmcFault(kind)
	case "boot":
		return s.bootFault(n)
	case "deploy":
		return s.deployFault(n)
	}
	return ""
}
