package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// class says what a request is for.
type class string

const (
	own    class = "own"    // about one node, port or allocation
	shared class = "shared" // lists that serve many resources, and what is asked once in a run
	lock   class = "lock"   // the chassis that carry provisioning_limit
)

// request is what requests that count together have in common.
type request struct {
	class class
	kind  string // method and path without names, such as "GET /v1/nodes/{id}"; the status too if it is an error
}

// objects are the collections whose members belong to one machine.
var objects = []string{"nodes", "ports", "portgroups", "allocations"}

// selectors are the query parameters that restrict a list to a single machine.
var selectors = []string{"node", "node_uuid", "address", "instance_uuid", "portgroup"}

// subpaths are the words of the API in a path; all else behind a collection is the name of something.
var subpaths = []string{
	"allocation", "bios", "boot_device", "console", "detail", "firmware", "history", "inventory", "maintenance", "management",
	"portgroups", "ports", "power", "provision", "raid", "states", "supported", "traits", "validate", "vifs", "vmedia",
}

// classify says how a request counts. A status below 400 does not matter.
func classify(method string, u *url.URL, status int) request {
	path := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' })
	named := false
	for i := 2; i < len(path); i++ {
		if (i == 2 && path[i] != "detail") || !slices.Contains(subpaths, path[i]) {
			path[i], named = "{id}", true
		}
	}
	kind := method + " /" + strings.Join(path, "/")
	for _, selector := range selectors {
		if u.Query().Has(selector) {
			kind, named = kind+"?"+selector+"={id}", true
			break
		}
	}
	if status >= http.StatusBadRequest {
		kind += fmt.Sprintf(" -> %d", status)
	}
	collection := ""
	if len(path) > 1 {
		collection = path[1]
	}
	switch reads := method == http.MethodGet || method == http.MethodHead; {
	case collection == "chassis":
		return request{lock, kind}
	case !reads, named && slices.Contains(objects, collection):
		return request{own, kind}
	default:
		return request{shared, kind}
	}
}
