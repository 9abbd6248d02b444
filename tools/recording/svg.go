package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"
)

// The screen in the picture. 100 columns are as wide as a page of the registry.
const (
	rows, columns = 30, 100
	rowHeight     = 17 // pixels
	width         = 756
	barHeight     = 28
	padding       = 16
	background    = "#15191f"
)

const (
	longestPause = 1500 * time.Millisecond // between two lines
	readingPause = 2 * time.Second         // before an empty line, which ends a part
	lastPause    = 8 * time.Second         // before the recording begins again
)

// classes are the classes of the style sheet by the code of SGR.
var classes = map[string]string{"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta"}

const stylesheet = `text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono','DejaVu Sans Mono',monospace;fill:#d7dde5;white-space:pre}
.bold{font-weight:700;fill:#fff}.dim{fill:#8b96a3}.red{fill:#ff8f85}.green{fill:#7ee094}.yellow{fill:#f2cf73}.blue{fill:#8cbcff}.magenta{fill:#d9aefc}
`

// animate returns the SVG. A curtain covers the lines that are still to come, and the output scrolls when the screen is full.
// Without animation the picture shows the end.
func animate(title string, lines []line) string {
	lines = append([]line{{0, "\x1b[1m$ " + title + "\x1b[0m"}}, lines...)
	var text, scroll, curtain strings.Builder
	times, total := schedule(lines)
	for i, l := range lines {
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\">%s</text>\n", padding, i*rowHeight+13, spans(l.text))
		if i+1 == len(lines) || times[i+1] != times[i] {
			percent := 100 * float64(times[i]) / float64(total)
			fmt.Fprintf(&scroll, "%.2f%%{transform:translateY(%dpx)}", percent, scrolled(i+1))
			fmt.Fprintf(&curtain, "%.2f%%{transform:translateY(%dpx)}", percent, (i+1)*rowHeight)
		}
	}
	end := fmt.Sprintf("{transform:translateY(%dpx)", scrolled(len(lines)))
	down := fmt.Sprintf("{transform:translateY(%dpx)", len(lines)*rowHeight)
	style := stylesheet +
		fmt.Sprintf("#output%s;animation:scroll %.1fs step-end infinite}\n", end, total.Seconds()) +
		fmt.Sprintf("#curtain%s;animation:curtain %.1fs step-end infinite}\n", down, total.Seconds()) +
		fmt.Sprintf("@keyframes scroll{%s100%%%s}}\n", &scroll, end) +
		fmt.Sprintf("@keyframes curtain{%s100%%%s}}\n", &curtain, down) +
		"@media (prefers-reduced-motion: reduce){#output,#curtain{animation:none}}\n"
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title">
<!-- Recorded by tools/recording: make recording. -->
<title id="title">%[3]s</title>
<style>
%[4]s</style>
<rect x="0.5" y="0.5" width="%[5]d" height="%[6]d" rx="8" fill="%[7]s" stroke="#3d444d"/>
<circle cx="18" cy="15" r="5" fill="#8b96a3"/><circle cx="34" cy="15" r="5" fill="#8b96a3"/><circle cx="50" cy="15" r="5" fill="#8b96a3"/>
<svg x="1" y="%[8]d" width="%[9]d" height="%[10]d">
<g id="output">
%[11]s<rect id="curtain" width="%[1]d" height="%[12]d" fill="%[7]s"/>
</g>
</svg>
</svg>
`, width, barHeight+rows*rowHeight+padding, html.EscapeString(title), style, width-1, barHeight+rows*rowHeight+padding-1, background,
		barHeight, width-2, rows*rowHeight, &text, (len(lines)+rows)*rowHeight)
}

// scrolled is how far the output has scrolled after some lines.
func scrolled(lines int) int { return -max(0, lines-rows) * rowHeight }

// schedule returns when each line appears in the animation, and how long the animation is. Lines that came together appear
// together, and long pauses are shortened.
func schedule(lines []line) (times []time.Duration, total time.Duration) {
	for i, l := range lines {
		if l.text == "" {
			total += readingPause
		} else if i > 0 && l.at-lines[i-1].at > 20*time.Millisecond {
			total += min(l.at-lines[i-1].at, longestPause)
		}
		times = append(times, total)
	}
	return times, total + lastPause
}

var sgr = regexp.MustCompile(`\x1b\[([0-9]*)m`)

// spans turns a line with codes of SGR into SVG. A line that is too long is cut.
func spans(text string) string {
	var out strings.Builder
	class, column := "", 0
	add := func(piece string) {
		runes := []rune(piece)
		runes = runes[:min(len(runes), columns-column)]
		column += len(runes)
		switch piece = html.EscapeString(string(runes)); {
		case piece == "":
		case class == "":
			out.WriteString(piece)
		default:
			fmt.Fprintf(&out, `<tspan class="%s">%s</tspan>`, class, piece)
		}
	}
	at := 0
	for _, m := range sgr.FindAllStringSubmatchIndex(text, -1) {
		add(text[at:m[0]])
		class, at = classes[text[m[2]:m[3]]], m[1]
	}
	add(text[at:])
	return out.String()
}
