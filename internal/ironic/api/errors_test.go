package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
)

func TestFaultText_shapes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"application": {
			`{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Node nope could not be found.\", \"debuginfo\": null}"}`,
			"Node nope could not be found.",
		},
		"object": {`{"error_message": {"faultstring": "Node nope could not be found."}}`, "Node nope could not be found."},
		"router": {
			`{"error_message": "{\"code\": 405, \"title\": \"Method Not Allowed\", \"description\": \"The method is not allowed.\"}"}`,
			"The method is not allowed.",
		},
		"router without words": {`{"error_message": "{\"code\": 404, \"title\": \"Not Found\", \"description\": \"\"}"}`, "Not Found"},
		"plain": {
			`{"error_message": "406 Not Acceptable\n\nThe resource could not be generated"}`,
			"406 Not Acceptable\n\nThe resource could not be generated",
		},
		"http_basic":   {`{"error":{"message":"Authorization required","code":401}}`, "Authorization required"},
		"empty":        {"", ""},
		"empty object": {"{}", ""},
		"null":         {`{"error_message": null}`, ""},
		"number":       {`{"error_message": 7}`, ""},
		"list":         {`[]`, "[]"},
		"text":         {"upstream connect error", "upstream connect error"},
		"web page": {
			"<html>\n<head><title>\n502 Bad Gateway </title></head></html>",
			"a web page, not the API: 502 Bad Gateway",
		},
		"untitled web page": {"<!DOCTYPE HTML><HTML><body>no</body></HTML>", "a web page, not the API"},
	} {
		if got := faultText([]byte(tc.body)); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestFaultText_firstLine(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	err := c.Wrap(t.Context(), refused(400, "Schema error for deploy_steps: 'step' is required\n\nFailed validating 'required' in "+
		"schema:\n{...}"))
	if want := "Schema error for deploy_steps: 'step' is required (400 Bad Request)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestRedact_repeatedSecrets(t *testing.T) {
	t.Parallel()
	c := New(Config{Password: "from-the-config"})
	for _, secret := range []string{"calvin", "calvin-and-hobbes", "#cloud-config\npassword: tiger", "abc"} {
		c.cfg.Secrets.Hide(secret)
	}
	for said, want := range map[string]string{
		"ipmitool -P calvin failed":                                 "ipmitool -P ****** failed",
		"calvin-and-hobbes is longer":                               "****** is longer", // though calvin is a part of it
		"from-the-config":                                           "******",
		"user_data #cloud-config\npassword: tiger is no":            "user_data ****** is no",
		"user_data of many lines: #cloud-config\npassword: tiger\n": "user_data of many lines: ******",
		"abc is too short to be hidden":                             "abc is too short to be hidden",
	} {
		text, _ := json.Marshal(said) // strings always marshal
		body := `{"error_message": {"faultstring": ` + string(text) + `}}`
		err := c.Wrap(t.Context(), gophercloud.ErrUnexpectedResponseCode{Actual: 400, Body: []byte(body)})
		if got := err.Error(); got != want+" (400 Bad Request)" {
			t.Errorf("%q reads %q, want %q", said, got, want)
		}
	}
}

func FuzzFaultText(f *testing.F) {
	for _, seed := range []string{
		`{"error_message": "{\"faultstring\": \"no\"}"}`, `{"error_message": {"title": "no"}}`, `{"error":{"message":"no"}}`,
		`{"error": null}`,
		`{"error_message": "\"{}\""}`, "<title>", "</title><title>", "", "null", "\xff", `{"error_message": "` + "\\u0000" + `"}`,
	} {
		f.Add([]byte(seed))
	}
	c := New(Config{})
	c.cfg.Secrets.Hide("0000")
	f.Fuzz(func(t *testing.T, body []byte) {
		err := c.Wrap(t.Context(), gophercloud.ErrUnexpectedResponseCode{Actual: 400, Body: body})
		text := err.Error()
		if strings.Contains(strings.TrimSpace(text), "\n") || strings.Contains(text, "0000") {
			t.Errorf("%q has several lines or a secret", text)
		}
		if text == "" {
			t.Error("nothing is said")
		}
	})
}
