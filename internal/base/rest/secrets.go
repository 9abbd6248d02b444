package rest

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Stars replace a secret in a text.
const Stars = "******"

// Secrets are strings that must not appear in texts. The zero value is ready to use. It is safe for concurrent use.
type Secrets struct {
	mu       sync.Mutex
	values   map[string]bool
	replacer *strings.Replacer // nil: values has changed
}

// Sizes of secrets, in bytes.
const (
	shortest       = 4    // replacing shorter ones would damage ordinary words
	shortestInURL  = 16   // of a value in a query: shorter ones are words such as "download"
	shortestToken  = 8    // of a user without a password in a URL, who is probably a token
	longestEscaped = 4096 // longer ones, such as config drives, are looked for only as they are
)

// harmless are values that are no secrets even if a secret attribute has them.
var harmless = []string{"true", "false", "null"}

// Hide adds a secret. It ignores secrets of fewer than four characters. Redact also finds the secret in quotes, and escaped in a URL.
func (s *Secrets) Hide(value string) {
	if len(value) < shortest || slices.Contains(harmless, value) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(value)
	if len(value) > longestEscaped {
		return
	}
	quoted := strconv.Quote(value)
	s.add(quoted[1 : len(quoted)-1])
	s.add(url.QueryEscape(value))
	s.add(url.PathEscape(value))
}

func (s *Secrets) add(value string) {
	if s.values[value] {
		return
	}
	if s.values == nil {
		s.values = map[string]bool{}
	}
	s.values[value], s.replacer = true, nil
}

// HideURL adds the credentials, the query and the fragment of a text that is a URL, which a message may contain without the rest of the
// URL. It ignores other texts.
func (s *Secrets) HideURL(text string) {
	if !strings.ContainsAny(text, "@?#") || !strings.Contains(text, "://") {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	password, given := u.User.Password()
	if s.Hide(password); !given && len(u.User.Username()) >= shortestToken {
		s.Hide(u.User.Username())
	}
	s.Hide(u.RawQuery)
	if len(u.Fragment) >= shortestInURL {
		s.Hide(u.Fragment)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if len(value) >= shortestInURL {
				s.Hide(value)
			}
		}
	}
}

// Redact returns a text in which stars replace the secrets, and the credentials, the query and the fragment of each URL.
func (s *Secrets) Redact(text string) string {
	if text == "" {
		return text
	}
	return redactURLs(s.current().Replace(text))
}

func (s *Secrets) current() *strings.Replacer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replacer == nil {
		values := make([]string, 0, len(s.values))
		for value := range s.values {
			values = append(values, value)
		}
		slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may be the beginning of another
		pairs := make([]string, 0, 2*len(values))
		for _, value := range values {
			pairs = append(pairs, value, Stars)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer
}

var (
	// credentials are what a URL has before its host. A password may contain unescaped slashes, a port does not look like one.
	credentials = regexp.MustCompile("(://)[^\\s/?#\"'`<>@]*(?::\\d*(?:[^\\d/\\s\"'`<>@][^\\s\"'`<>@]*)?)?@(?:[^\\s/?#\"'`<>]*@)?")
	// query is the query of a URL, or of a path with parameters, without punctuation of the sentence after it.
	query = regexp.MustCompile("(://[^\\s?\"'`<>]*|/[^\\s?\"'`<>]*)\\?[^\\s\"'`<>]*[^\\s\"'`<>.,;:)\\]}]")
	// fragment is the fragment of a URL without a query. That of a query goes with it.
	fragment = regexp.MustCompile("(://[^\\s?#\"'`<>]*)#[^\\s\"'`<>]*[^\\s\"'`<>.,;:)\\]}]")
)

// redactURLs replaces the credentials, the query and the fragment of each URL in a text, and the query of each path.
func redactURLs(text string) string {
	if strings.Contains(text, "@") {
		text = credentials.ReplaceAllString(text, "${1}"+Stars+"@")
	}
	if strings.Contains(text, "#") {
		text = fragment.ReplaceAllString(text, "${1}#"+Stars)
	}
	if !strings.Contains(text, "?") {
		return text
	}
	return query.ReplaceAllStringFunc(text, func(found string) string {
		at, parameters, _ := strings.Cut(found, "?")
		if !strings.Contains(at, "://") && !strings.Contains(parameters, "=") {
			return found // a question, not a path
		}
		return at + "?" + Stars
	})
}
