package fakeoneview

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// part returns what a client reads below a server; nil if there is no such part.
func (h *hardware) part(c *call) map[string]any {
	session := "addr=" + h.ILOAddress + "&sessionkey=" + strings.ToLower(h.SerialNumber)
	switch c.at(3) {
	case "remoteConsoleUrl":
		return map[string]any{"remoteConsoleUrl": "hplocons://" + session}
	case "iloSsoUrl":
		return map[string]any{"iloSsoUrl": "https://" + h.ILOAddress + "/sso?" + session}
	case "javaRemoteConsoleUrl":
		return map[string]any{"javaRemoteConsoleUrl": "https://" + h.ILOAddress + "/java?" + session}
	case "firmware":
		return h.firmware()
	case "bios":
		return map[string]any{"BootMode": "Uefi", "WorkloadProfile": "GeneralPowerEfficientCompute"}
	case "environmentalConfiguration":
		return map[string]any{"calibratedMaxPower": 0, "idleMaxPower": 0, "powerCapType": "NONE", "height": 1}
	case "localStorage", "localStorageV2":
		return map[string]any{"serverHardwareUri": h.URI, "data": []any{}}
	case "physicalServerHardware":
		return map[string]any{"members": []any{}}
	case "utilization":
		return map[string]any{"uri": h.URI, "isFresh": true, "metricList": []any{}, "refreshTaskUri": nil}
	}
	return nil
}

func (h *hardware) firmware() map[string]any {
	return map[string]any{
		"type": "server-hardware-firmware-1", "category": pathHardware, "uri": h.URI + "/firmware", "state": "Supported",
		"serverHardwareUri": h.URI, "serverName": h.Name, "serverModel": h.Model, "eTag": nil,
		"components": []any{map[string]any{
			"componentKey": "TBD", "componentName": "System ROM", "componentLocation": "System Board", "componentVersion": "I36 02/17/2017",
		}},
	}
}

// hardwareCollection serves the list of servers and what is done with several of them.
func (s *Server) hardwareCollection(c *call) (Reply, error) {
	documents := []map[string]any{}
	switch c.method + " " + strings.Join(c.path[2:], "/") {
	case "GET ":
		for _, h := range s.hardware {
			documents = append(documents, s.hardwareDocument(c, h))
		}
		return s.list(c, pathHardware, documents)
	case "GET */firmware":
		for _, h := range s.hardware {
			documents = append(documents, h.firmware())
		}
		return s.list(c, pathHardware, documents)
	case "GET schema":
		return schema(pathHardware), nil
	case "POST ", "POST discovery":
		return s.addRackServers(c)
	case "POST firmware-compliance":
		return jsonReply(http.StatusOK, map[string]any{"serverFirmwareUpdateRequired": false, "componentMappingList": []any{}}), nil
	}
	return Reply{}, methodNotAllowed(c.method)
}

// addRackServers adds servers by the addresses of their iLOs. A range is one server.
func (s *Server) addRackServers(c *call) (Reply, error) {
	body, err := c.object()
	if err != nil {
		return Reply{}, err
	}
	hosts, _ := body["mpHostsAndRanges"].([]any)
	if name := text(body, "hostname"); name != "" {
		hosts = []any{name}
	}
	if len(hosts) == 0 {
		return Reply{}, badField("hostname", "it is required")
	}
	t := &task{name: "Add", category: pathHardware}
	return s.change(c, t, nil, func() {
		for _, host := range hosts {
			name := fmt.Sprint(host)
			t.label, t.resource = name, s.addHardware(Hardware{
				Name: name, ILOAddress: name, Model: "ProLiant DL380 Gen9", TypeURI: s.addNamed(&s.types, pathTypes, "DL380 Gen9 1"),
			}).URI
		}
	})
}

func (s *Server) changeHardware(c *call, h *hardware) (Reply, error) {
	t := &task{name: "Update", resource: h.URI, label: h.Name, category: pathHardware}
	switch c.method + " " + c.at(3) {
	case "PATCH ":
		return s.patchHardware(c, h, t)
	case "DELETE ":
		t.name = "Remove"
		return s.change(c, t, func() *Problem { return h.inUse() }, func() {
			s.hardware = slices.DeleteFunc(s.hardware, func(other *hardware) bool { return other == h })
		})
	case "PUT mpFirmwareVersion", "PATCH firmware":
		return s.change(c, t, nil, func() { s.touch(h) })
	case "PUT refreshState", "PUT powerState", "PUT environmentalConfiguration":
		body, err := c.object()
		switch {
		case err != nil:
			return Reply{}, err
		case c.at(3) == "powerState":
			return s.changePower(c, h, body)
		case c.at(3) == "environmentalConfiguration":
			return jsonReply(http.StatusOK, body), nil
		case text(body, "refreshState") != "RefreshPending":
			return Reply{}, badField("refreshState", "it must be RefreshPending")
		}
		t.name = "Refresh"
		return s.change(c, t, nil, func() { s.touch(h) })
	}
	return Reply{}, methodNotAllowed(c.method)
}

// inUse refuses to remove a server that has a profile. The real code is not known.
func (h *hardware) inUse() *Problem {
	if h.profile == nil {
		return nil
	}
	return problem("ServerHardwareHasProfile", "Remove the profile and try again.", "The server hardware %s has a profile.", h.link())
}

// patchHardware replaces one of the attributes that HPE's SDKs replace.
func (s *Server) patchHardware(c *call, h *hardware, t *task) (Reply, error) {
	path, value, err := c.replaced()
	if err != nil {
		return Reply{}, err
	}
	switch key := strings.TrimPrefix(path, "/"); key {
	case "powerState":
		wanted, _ := value.(map[string]any)
		return s.changePower(c, h, wanted)
	case "uidState", "oneTimeBoot", "maintenanceMode", "mpState", "refreshState":
		return s.change(c, t, nil, func() {
			if h.patched == nil {
				h.patched = map[string]any{}
			}
			if key == "maintenanceMode" {
				value = value == true || value == "true"
			}
			if key != "mpState" && key != "refreshState" { // these two begin something and stay as they are
				h.patched[key] = value
			}
			s.touch(h)
		})
	}
	return Reply{}, badField(path, "%v cannot be set", value)
}
