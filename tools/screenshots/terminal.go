package main

import (
	"html/template"
	"regexp"
	"strings"
)

// terminalPage shows a terminal.
var terminalPage = template.Must(template.New("terminal").Parse(`<!DOCTYPE html>
<meta charset="utf-8">
<style>
body { margin: 0; background: #1b1e24; }
pre { margin: 0; padding: 18px 20px; color: #d7dae0; font: 14px/18px "DejaVu Sans Mono", monospace; }
.s1 { color: #ffffff; font-weight: bold; } .s2 { color: #7d8590; } .s31 { color: #ff6b6b; } .s32 { color: #5fd38d; } .s33 { color: #e9c46a; }
</style>
<pre>{{.}}</pre>
`))

// lastFrame returns the last frame of metal watch that is complete: from the cursor's home to the clearing of the rest.
func lastFrame(output string) string {
	const home, end = "\x1b[H", "\x1b[J"
	last := strings.LastIndex(output, end)
	if last < 0 {
		return ""
	}
	begin := strings.LastIndex(output[:last], home)
	return strings.ReplaceAll(output[begin+len(home):last], "\r", "")
}

// sequence is a control sequence: colours are kept, all others are dropped.
var sequence = regexp.MustCompile(`\x1b\[([0-9;?]*)([A-Za-z])`)

// paint turns a frame into HTML.
func paint(frame string) string {
	var page strings.Builder
	open := false
	for frame != "" {
		at := sequence.FindStringSubmatchIndex(frame)
		if at == nil {
			page.WriteString(template.HTMLEscapeString(frame))
			break
		}
		page.WriteString(template.HTMLEscapeString(frame[:at[0]]))
		if frame[at[4]:at[5]] == "m" {
			if open {
				page.WriteString("</span>")
			}
			colour := frame[at[2]:at[3]]
			if open = colour != "0" && colour != ""; open {
				page.WriteString(`<span class="s` + colour + `">`)
			}
		}
		frame = frame[at[1]:]
	}
	if open {
		page.WriteString("</span>")
	}
	return page.String()
}
