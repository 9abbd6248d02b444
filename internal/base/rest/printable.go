package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Printable makes a text of others harmless for a terminal. The sign for a broken character replaces each character that a terminal
// would obey or not show: control characters, among them the beginning of escape sequences, signs that change the direction of
// writing, characters without width, and separators of lines. Line feeds and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

// Padded reports whether a text begins or ends with white space or a byte order mark, as one from a file or a secret store may.
func Padded(text string) bool { return strings.Trim(strings.TrimSpace(text), "\ufeff") != text }

// OneLine is Printable for a text that must stay in its line or cell: spaces replace line feeds and tabs.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return visible(r)
	}, strings.ReplaceAll(strings.Trim(text, " \t\r\n"), "\r\n", "\n"))
}

// WriteJSON writes a JSON document in which the characters that Printable replaces are escaped: it is harmless for a terminal, and has what
// the value has.
func WriteJSON(to io.Writer, value any) error {
	var text, escaped bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	for _, r := range text.String() {
		if r == '\n' || visible(r) == r {
			escaped.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&escaped, "\\u%04x", unit)
		}
	}
	_, err := escaped.WriteTo(to)
	return err
}

// visible returns a character, or the sign for a broken one.
func visible(r rune) rune {
	if unicode.IsGraphic(r) && !unicode.In(r, invisible) {
		return r
	}
	return unicode.ReplacementChar
}

// invisible are characters without width that Unicode calls letters, marks or symbols. Control characters, formats (U+200B, U+202E,
// U+2066, U+FEFF, tags) and separators of lines are not graphic.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // inherent vowels of Khmer
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // variation selectors of Mongolian
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // empty braille pattern
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // filler
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // filler
	},
	R32: []unicode.Range32{{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}}, // variation selectors
}

// Printer writes texts to a terminal, Printable.
type Printer struct{ To io.Writer }

// Write writes a text, which must not end within a character. It returns the length of the given text.
func (p *Printer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.To, Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
