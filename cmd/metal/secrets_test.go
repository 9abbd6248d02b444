package main

import (
	"io"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

// The filter of traces knows what the clients of each command know.
func TestTrace_knowsTheSecretsOfTheClients(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	secrets := &rest.Secrets{}
	root := newRoot(func(name string) string { return s.env[name] }, secrets)
	root.SetArgs([]string{"show", name(0)})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := secrets.Redact("password " + password); got != "password ******" {
		t.Errorf("a trace would have %q", got)
	}
}
