// Package clock compares times that a site's clocks have written. They may differ from each other and from this computer's, and they jump.
package clock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Slack is how far the clocks of conductors and API services may differ, and times in whole seconds from others.
const Slack = 5 * time.Second

// Age returns how long ago a time was, and false if it is to come: then another clock has written it, or a client has made it up, and
// nobody knows its age. Both times are by the same clock, as far as one can know.
func Age(at, now time.Time) (age time.Duration, known bool) {
	age = now.Sub(at)
	return max(age, 0), !at.IsZero() && age >= -Slack
}

// IsYoung reports whether a time is at most so long ago. A time to come is not.
func IsYoung(at, now time.Time, most time.Duration) bool {
	age, known := Age(at, now)
	return known && age <= most
}

// IsOld reports whether a time is longer ago. A time to come is not: its age is not known, so it is neither young nor old.
func IsOld(at, now time.Time, most time.Duration) bool {
	age, known := Age(at, now)
	return known && age > most
}

// Text says how long ago a time was, or that it is to come.
func Text(at, now time.Time) string {
	stamp := at.UTC().Format(time.RFC3339)
	if age, known := Age(at, now); known {
		return fmt.Sprintf("%s ago (%s)", age.Round(time.Second), stamp)
	}
	return "at a time to come (" + stamp + ")"
}

// ParseAge reads an age such as "90d", "12h" or "30m"; false if the text is none, or not positive.
func ParseAge(text string) (age time.Duration, ok bool) {
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil && n > 0
	}
	age, err := time.ParseDuration(text)
	return age, err == nil && age > 0
}
