package main

import (
	"fmt"
	"strings"
)

// tone is what a box or a text means.
type tone string

const (
	plain   tone = "plain"
	muted   tone = "muted"   // waiting, or explaining
	safe    tone = "safe"    // does nothing to the machine
	restart tone = "restart" // boots or restarts the machine
	erase   tone = "erase"   // erases data
	ours    tone = "ours"    // used by Ironic; an operation of this run
	theirs  tone = "theirs"  // used by others
)

// colours of a tone.
type colours struct{ fill, line, text string }

// palette holds the colours of a page.
type palette struct {
	card, border string
	tones        map[tone]colours
}

var light = palette{"#ffffff", "#d0d7de", map[tone]colours{
	plain:   {"#f3f5f8", "#8c959f", "#1f2328"},
	muted:   {"#ffffff", "#8c959f", "#57606a"},
	safe:    {"#e6f4ea", "#2f8a4c", "#135c2b"},
	restart: {"#fff4d6", "#bf8700", "#6b4800"},
	erase:   {"#ffe9e7", "#cf3a30", "#98160e"},
	ours:    {"#e4f0ff", "#2f73d0", "#0b4a9e"},
	theirs:  {"#f1e8fd", "#8250df", "#5a2ca0"},
}}

var dark = palette{"#15191f", "#3d444d", map[tone]colours{
	plain:   {"#222831", "#7d8793", "#e6edf3"},
	muted:   {"#15191f", "#7d8793", "#a9b3be"},
	safe:    {"#12301d", "#3fa45f", "#8fe0a8"},
	restart: {"#382a08", "#c99a1f", "#f2cf73"},
	erase:   {"#40161a", "#e5655c", "#ffb3ad"},
	ours:    {"#163a6b", "#5592e6", "#a8ccff"},
	theirs:  {"#3d2866", "#a07ae8", "#d3bdff"},
}}

// css is the style sheet of a palette.
func (p palette) css() string {
	var out strings.Builder
	fmt.Fprintf(&out, ".card{fill:%s;stroke:%s}\n", p.card, p.border)
	for _, t := range []tone{plain, muted, safe, restart, erase, ours, theirs} {
		c := p.tones[t]
		fmt.Fprintf(&out,
			".%[1]s{fill:%[2]s;stroke:%[3]s}.%[1]s-text{fill:%[4]s}.%[1]s-line{stroke:%[3]s;fill:none}.%[1]s-head{fill:%[3]s}\n",
			t, c.fill, c.line, c.text)
	}
	return out.String()
}

// stylesheet is the style sheet of all diagrams. A page that shows a diagram as an image cannot style it, so the diagram
// follows the setting of the browser, and its card keeps it readable on any page.
var stylesheet = "text{font-family:-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif}\n" +
	".mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace}\n.bold{font-weight:600}\n" +
	light.css() + "@media (prefers-color-scheme: dark){\n" + dark.css() + "}\n"
