package rest

import (
	"slices"
	"strings"
	"sync"
)

// Secrets are strings that must not appear in the texts of a client.
type Secrets struct {
	mu     sync.Mutex
	values []string // the longest first, because one may be a part of another
}

// Hide adds a secret. It ignores secrets of fewer than four characters, because replacing them would damage ordinary words.
func (s *Secrets) Hide(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(value) >= 4 && !slices.Contains(s.values, value) {
		s.values = append(s.values, value)
		slices.SortStableFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	}
}

// Redact returns a text in which stars replace the secrets.
func (s *Secrets) Redact(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range s.values {
		text = strings.ReplaceAll(text, value, "******")
	}
	return text
}
