package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// Sizes in pixels. The registry is 760 wide, GitHub 830 and on a telephone 370: there a diagram is shown at three fifths.
const (
	width   = 600
	margin  = 20
	size    = 15 // of the text
	small   = 14
	leading = 20 // from line to line
	padding = 10 // between a box and its text
)

// canvas is a diagram, which grows as it is drawn. Drawing functions take the left and upper corner. They collect what does not
// fit in problems.
type canvas struct {
	title, description string
	bottom             int // of what is drawn
	body               strings.Builder
	problems           []error
}

func newCanvas(title, description string) *canvas {
	return &canvas{title: title, description: description}
}

// svg is the file.
func (c *canvas) svg() string {
	height := c.bottom + margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title desc">
<!-- Drawn by tools/diagrams: change it there, then run make diagrams. -->
<title id="title">%[3]s</title>
<desc id="desc">%[4]s</desc>
<style>
%[5]s</style>
<rect class="card" x="0.5" y="0.5" width="%[6]d" height="%[7]d" rx="8"/>
%[8]s</svg>
`, width, height, html.EscapeString(c.title), html.EscapeString(c.description), stylesheet, width-1, height-1, c.body.String())
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.body, format+"\n", args...) }

func (c *canvas) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

// rect draws a box.
func (c *canvas) rect(t tone, x, y, w, h int) {
	if x < 0 || y < 0 || x+w > width {
		c.problem("a box at %d,%d leaves the diagram", x, y)
	}
	c.bottom = max(c.bottom, y+h)
	c.add(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, t, x, y, w, h)
}

// box draws a box with a text that is centred vertically.
func (c *canvas) box(t tone, x, y, w, h int, text string) {
	c.rect(t, x, y, w, h)
	lines := wrap(text, size, w-2*padding)
	if len(lines)*leading > h {
		c.problem("%d lines in a box of %d pixels: %s", len(lines), h, text)
	}
	for i, line := range lines {
		c.line(t, size, "start", x+padding, y+(h-len(lines)*leading)/2+i*leading+15, line)
	}
}

// label draws a box with one line in its middle.
func (c *canvas) label(t tone, x, y, w, h int, text string) {
	c.rect(t, x, y, w, h)
	c.fits(text, size, w-4)
	c.line(t, size, "middle", x+w/2, y+h/2+5, text)
}

// text writes a text in lines of a width, and returns where the next line would be.
func (c *canvas) text(t tone, x, y, w int, text string) int {
	for _, line := range wrap(text, small, w) {
		c.fits(line, small, w)
		c.line(t, small, "start", x, y+15, line)
		y += leading
	}
	c.bottom = max(c.bottom, y)
	return y
}

// number draws a number in a circle around a point.
func (c *canvas) number(x, y, n int) {
	c.add(`<circle class="plain" cx="%d" cy="%d" r="11"/>`, x, y)
	c.line(plain, small, "middle", x, y+5, "*"+strconv.Itoa(n)+"*")
}

// entry is a line of a legend.
type entry struct {
	tone tone
	text string
}

// legend draws a row of tones with what they mean, and returns where the next line would be.
func (c *canvas) legend(y int, entries []entry) int {
	x := margin
	for _, e := range entries {
		c.rect(e.tone, x, y, 20, 20)
		c.line(plain, small, "start", x+28, y+15, e.text)
		x += 28 + measure(e.text, small) + 24
	}
	return y + 30
}

func (c *canvas) fits(text string, size, w int) {
	if got := measure(text, size); got > w {
		c.problem("%q is %d pixels wide, more than %d", text, got, w)
	}
}

// line writes one line. In it, `code` and *emphasis* are marked as here.
func (c *canvas) line(t tone, size int, anchor string, x, y int, text string) {
	var spans strings.Builder
	for _, s := range parse(text) {
		if s.class == "" {
			spans.WriteString(html.EscapeString(s.text))
		} else {
			fmt.Fprintf(&spans, `<tspan class="%s">%s</tspan>`, s.class, html.EscapeString(s.text))
		}
	}
	c.add(`<text class="%s-text" x="%d" y="%d" font-size="%d" text-anchor="%s" xml:space="preserve">%s</text>`, t, x, y, size, anchor,
		spans.String())
}

// link connects two points that belong together.
func (c *canvas) link(t tone, from, to [2]int) { c.path(t, `stroke-dasharray="4 4" `, from, to) }

// arrow draws a line through points, with a head at its end.
func (c *canvas) arrow(t tone, points ...[2]int) {
	c.path(t, "", points...)
	from, to := points[len(points)-2], points[len(points)-1]
	dx, dy := sign(to[0]-from[0])*8, sign(to[1]-from[1])*8
	c.add(`<path class="%s-head" d="M%d %dL%d %dL%d %dZ"/>`, t, to[0], to[1], to[0]-dx+dy/2, to[1]-dy+dx/2, to[0]-dx-dy/2, to[1]-dy-dx/2)
}

// path draws a line through points. more are attributes of it.
func (c *canvas) path(t tone, more string, points ...[2]int) {
	var d strings.Builder
	for i, p := range points {
		fmt.Fprintf(&d, "%c%d %d", "ML"[min(i, 1)], p[0], p[1])
	}
	c.add(`<path class="%s-line" stroke-width="2" %sd="%s"/>`, t, more, d.String())
}

func sign(n int) int { return max(-1, min(1, n)) }

// span is a piece of text in one font: "", "mono" or "bold".
type span struct{ class, text string }

// parse splits a text at the marks of `code` and *emphasis*.
func parse(text string) []span {
	var spans []span
	class := ""
	for {
		i := strings.IndexAny(text, "`*")
		if i < 0 {
			break
		}
		if i > 0 {
			spans = append(spans, span{class, text[:i]})
		}
		if class == "" {
			class = map[byte]string{'`': "mono", '*': "bold"}[text[i]]
		} else {
			class = ""
		}
		text = text[i+1:]
	}
	if text != "" {
		spans = append(spans, span{class, text})
	}
	return spans
}

// wrap breaks a text into lines, but not within code. No mark spans a break: each word of a marked piece has its own marks.
func wrap(text string, size, w int) []string {
	var words []string
	for _, s := range parse(text) {
		mark := map[string]string{"": "", "mono": "`", "bold": "*"}[s.class]
		pieces := strings.Split(s.text, " ")
		if s.class == "mono" {
			pieces = []string{s.text}
		}
		for i, word := range pieces {
			if word != "" {
				word = mark + word + mark
			}
			if i == 0 && len(words) > 0 {
				words[len(words)-1] += word
			} else {
				words = append(words, word)
			}
		}
	}
	lines := []string{words[0]}
	for _, word := range words[1:] {
		if longer := lines[len(lines)-1] + " " + word; measure(longer, size) <= w {
			lines[len(lines)-1] = longer
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// faces are fonts for measuring, by class. The fonts of browsers are at most as wide as these.
var faces = map[string]font.Face{"": face(goregular.TTF), "bold": face(gobold.TTF), "mono": face(gomono.TTF)}

// faceSize is the size at which the faces measure.
const faceSize = 100

func face(ttf []byte) font.Face {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		panic(err) // the font is part of the program
	}
	f, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: faceSize, DPI: 72})
	if err != nil {
		panic(err)
	}
	return f
}

// measure is the width of a line in pixels.
func measure(text string, size int) int {
	total := 0
	for _, s := range parse(text) {
		total += font.MeasureString(faces[s.class], s.text).Ceil() * size
	}
	return total / faceSize
}
