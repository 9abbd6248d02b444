package rest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"rack 7: fan\nbroken\t(µ 10 °C, 日本, עברית)": "rack 7: fan\nbroken\t(µ 10 °C, 日本, עברית)",
		"a\r\nb\rc":               "a\nb\ufffdc",
		"\x1b[2Jgone\x07\x00\x7f": "\ufffd[2Jgone\ufffd\ufffd\ufffd",
		"\u009b2Jgone\u0085":      "\ufffd2Jgone\ufffd",
		"\x9b2J":                  "\ufffd2J", // not UTF-8
		"\u202eevil\u202c \u2066x\u2069 \u200e \u061c": "\ufffdevil\ufffd \ufffdx\ufffd \ufffd \ufffd",
		"a\u200bb\u200cc\u200dd\ufeffe\u2060f\u00adg":  "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg",
		"a\u2028b\u2029c":                  "a\ufffdb\ufffdc",
		"\U000e0041\u3164\u2800\U000e0100": "\ufffd\ufffd\ufffd\ufffd",
	} {
		if got := rest.Printable(text); got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
		line := strings.NewReplacer("\n", " ", "\t", " ").Replace(want)
		if got := rest.OneLine(text); got != line {
			t.Errorf("%q in one line\n got %q\nwant %q", text, got, line)
		}
	}
}

func TestPrinter(t *testing.T) {
	t.Parallel()
	var to strings.Builder
	n, err := (&rest.Printer{To: &to}).Write([]byte("\x1bc reset\n"))
	if n != 9 || err != nil || to.String() != "\ufffdc reset\n" {
		t.Errorf("wrote %q: %d, %v", to.String(), n, err)
	}
}

// A document that is shown has what it was made of, and a terminal obeys none of it.
func TestWriteJSON(t *testing.T) {
	t.Parallel()
	const owner = "\x1b[2J\u009b1m\u202eevil\u2066\u200f\u2028\U000e0041 <é, 日本>\n\ttab"
	var to strings.Builder
	if err := rest.WriteJSON(&rest.Printer{To: &to}, map[string]string{"owner": owner}); err != nil {
		t.Fatal(err)
	}
	var read map[string]string
	if err := json.Unmarshal([]byte(to.String()), &read); err != nil || read["owner"] != owner {
		t.Errorf("%v: read %q of\n%s", err, read["owner"], to.String())
	}
	if text := to.String(); rest.Printable(text) != text || !strings.Contains(text, `\u009b`) || !strings.Contains(text, "<é, 日本>") {
		t.Errorf("wrote %q", text)
	}
}
