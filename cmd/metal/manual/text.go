package manual

import (
	"regexp"
	"strings"
)

// width is the length of a line of text in the source of a page.
const width = 78

// item is an indented line of a description, with the lines below it that are indented further: a term and what it means, or only a term.
type item struct{ term, text string }

// block is a paragraph of a description, or a list of items.
type block struct {
	text  string
	items []item
}

// blocksOf splits a description, as help shows it, into its blocks.
func blocksOf(description string) []block {
	var blocks []block
	for paragraph := range strings.SplitSeq(strings.Trim(description, "\n"), "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		prose := 0
		for prose < len(lines) && !isIndented(lines[prose]) {
			prose++
		}
		if prose > 0 {
			blocks = append(blocks, block{text: strings.Join(lines[:prose], " ")})
		}
		if prose < len(lines) {
			blocks = append(blocks, block{items: itemsOf(lines[prose:])})
		}
	}
	return blocks
}

// itemsIn reads a list; none if it is empty.
func itemsIn(list string) []item {
	if list = strings.Trim(list, "\n"); list == "" {
		return nil
	}
	return itemsOf(strings.Split(list, "\n"))
}

func isIndented(line string) bool {
	return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
}

// itemsOf reads indented lines: a term and its text, which begins in the column in which it goes on below, or after a gap.
func itemsOf(lines []string) []item {
	var items []item
	depth := indentOf(lines[0])
	column := columnOf(lines, depth)
	for _, line := range lines {
		if indentOf(line) > depth && len(items) > 0 {
			last := &items[len(items)-1]
			last.text = strings.TrimSpace(last.text + " " + strings.TrimSpace(line))
			continue
		}
		term, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if text == "" && column > 0 && column < len(line) && line[column-1] == ' ' {
			term, text = strings.TrimSpace(line[:column]), line[column:]
		}
		items = append(items, item{term, strings.TrimSpace(text)})
	}
	return items
}

// columnOf returns the indentation of the lines that go on with the text of an item; 0 if there are none.
func columnOf(lines []string, depth int) int {
	for _, line := range lines {
		if indent := indentOf(line); indent > depth {
			return indent
		}
	}
	return 0
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// isExample reports whether a list shows calls of the program.
func (b block) isExample(program string) bool {
	for _, i := range b.items {
		if strings.HasPrefix(i.term, program+" ") {
			return true
		}
	}
	return false
}

// printed replaces what roff does not print as it is: the beginning of an escape sequence, and characters that it makes typographic.
var printed = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// flagName matches a flag in escaped text.
var flagName = regexp.MustCompile(`(^|[^\w-])((?:\\-){2}[a-z](?:[a-z0-9]|\\-)*)`)

// prose escapes a word of a text. Flags are bold.
func prose(word string) string { return flagName.ReplaceAllString(printed.Replace(word), `$1\fB$2\fP`) }

// fill writes text in lines of the source. A sentence begins on a line of its own, as roff wants it.
func fill(to *strings.Builder, text string) {
	line := 0
	for _, word := range strings.Fields(text) {
		escaped := prose(word)
		switch {
		case line == 0:
		case line+len(escaped) >= width:
			to.WriteByte('\n')
			line = 0
		default:
			to.WriteByte(' ')
			line++
		}
		if line == 0 && strings.HasPrefix(word, ".") {
			escaped = `\&` + escaped // it is not a request
		}
		to.WriteString(escaped)
		line += len(escaped)
		if endsSentence(word) {
			to.WriteByte('\n')
			line = 0
		}
	}
	if line > 0 {
		to.WriteByte('\n')
	}
}

// endsSentence reports whether a word ends a sentence.
func endsSentence(word string) bool {
	word = strings.TrimRight(word, `)"`)
	return strings.HasSuffix(word, ".") || strings.HasSuffix(word, "?") || strings.HasSuffix(word, "!")
}
