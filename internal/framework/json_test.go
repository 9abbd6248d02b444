package framework_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

func TestJSON_saysWhereItIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": "S3cret",}`:                "the fault is at line 1, column 16",
		"{\n  \"ä\": \"S3cret\" \"b\"\n}": "the fault is at line 2, column 17",
		"password: S3cret\n":              "the fault is at line 1, column 1",
		"S3cret":                          "the fault is at line 1, column 1",
		`{"a": "S3cret`:                   "it ends too early, at line 1, column 13",
		"{\"a\": 1}\n{\"b\": 2}":          "the fault is at line 2, column 1",
		" \n":                             "it is empty",
		`{"a": 1e999}`:                    "",
		`{"a": "S3cret"}`:                 "",
		`"text"`:                          "",
		"{\"a\": \"S3cret\", \"b\": \"line\nend\"}": "the fault is at line 1, column 27",
	} {
		var resp xattr.ValidateAttributeResponse
		framework.JSONValue(text).ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("meta_data")}, &resp)
		said := ""
		for _, d := range resp.Diagnostics {
			said += d.Summary() + ": " + d.Detail()
		}
		if (want == "") != (said == "") || !strings.Contains(said, want) || strings.Contains(said, "S3cret") {
			t.Errorf("%.40q: %s, want %s", text, said, want)
		}
		if want != "" && !strings.Contains(said, "jsonencode(yamldecode(") {
			t.Errorf("%.40q: %s names no way to write YAML", text, said)
		}
	}
}

func TestJSON_meaning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`{"a": 1, "b": [2]}`, `{"b":[2],"a":1}`, true},
		{`{"a": 1}`, `{"a": 2}`, false},
		{`{"a": 9007199254740993}`, `{"a": 9007199254740992}`, false},
		{`{"a": 1}`, `{"a": 1.0}`, true},
		{`{"a": 1}`, `{"a": "1"}`, false},
		{`{"a": "<"}`, `{"a": "\u003c"}`, true},
		{`{`, `{`, false},
	} {
		same, diags := framework.JSONValue(tt.a).StringSemanticEquals(t.Context(), framework.JSONValue(tt.b))
		if same != tt.same || diags.HasError() {
			t.Errorf("%s and %s: %v %v", tt.a, tt.b, same, diags)
		}
	}
}
