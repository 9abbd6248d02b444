package main

import (
	"regexp"
	"strconv"
	"strings"
)

// maxSentence is the largest number of words in a sentence.
const maxSentence = 40

// limits are the largest numbers of words of pages, code included. The first pattern that fits decides.
var limits = []struct {
	prefix string
	words  int
}{
	{"README.md", 900},
	{"CONTRIBUTING.md", 1200},
	{"docs/guides/troubleshooting", 3900},       // users search them for a title
	{"docs/guides/failure-reasons.md", 3500},    // a section for each reason
	{"docs/guides/how-this-is-tested.md", 1700}, // a row for each part
	{"docs/guides/day-two.md", 1700},            // every operation on a machine that runs
	{"docs/guides/large-applies.md", 1550},      // figures
	{"docs/guides/watch.md", 2100},              // each sign of a machine, and the format of a record
	{"docs/guides/observe.md", 1640},            // traces and metrics
	{"docs/guides/operate.md", 1650},            // a row for each operation
	{"docs/guides/from-m", 800},                 // other tools: a table of names, and one example
	{"docs/guides/", 1500},
	{"docs/resources/host.md", 4900},       // it has twice the attributes of any other resource
	{"docs/resources/deployment.md", 4480}, // three ways to run a machine, and what each change costs
	{"docs/resources/", 2500},
	{"docs/list-resources/", 600},
	{"docs/index.md", 2800},
}

// limitOf is the largest number of words of a page; 0 means none.
func limitOf(path string) int {
	for _, l := range limits {
		if strings.HasPrefix(path, l.prefix) {
			return l.words
		}
	}
	return 0
}

// phrases are words that hide who does what, or that readers stumbled over, with what to write instead.
var phrases = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{phrase(`somebody|someone|anybody|anyone|nobody|no one|whoever|whomever`), "name the actor: another client, an operator, another run"},
	{phrase(`(?:it|this|that|which|and|or) is no (?:[a-km-z]\w*|l[a-np-z]\w*)`), `write "is not a ..."`}, // "is no longer" is fine
	{phrase(`in work`), `write "has an operation in progress"`},
	{phrase(`spoken to|speaks to`), `write "uses" or "sends requests to"`},
	{phrase(`(?:two|between|last|first|next) looks?`), `write "poll" or "read"`},
	{phrase(`at most so many|for nothing|of its own accord`), "name the number or the fact"},
	{phrase(`whose (?:it|the \w+) is`), `write "who owns"`},
	{phrase(`does? without`), `write "does not need"`},
	{phrase(`bored|gift|riddle|fears?`), "describe the fact"},
	{phrase(`stands where`), `write "follows"`},
	{phrase(`apart from`), `write "except for"`},
	{phrase(`simply|of course|obviously`), "leave it out"},
}

func phrase(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + alternatives + `)\b`)
}

// badPhrases are the findings in one block of text.
func badPhrases(text string) []string {
	var found []string
	for _, p := range phrases {
		for _, hit := range p.pattern.FindAllString(text, -1) {
			found = append(found, strconv.Quote(hit)+": "+p.instead)
		}
	}
	return found
}

var sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+`)

// longSentences are the sentences of a block with more than maxSentence words.
func longSentences(text string) []string {
	var found []string
	for _, sentence := range sentenceEnd.Split(text, -1) {
		if words := len(strings.Fields(sentence)); words > maxSentence {
			found = append(found, sentence)
		}
	}
	return found
}
