// Package rest contains what the clients of Ironic and OneView share: TLS settings, waiting, requests that outlast an
// interruption, and redaction of secrets.
package rest

import (
	"context"
	"time"
)

// Sleep waits for d, or returns ctx's error as soon as ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Backoff is the waiting time between tries: First, then multiplied by Factor after each try, up to Max.
type Backoff struct {
	First, Max time.Duration
	Factor     float64 // more than 1

	tries uint
}

// Next returns the next waiting time and counts the try.
func (b *Backoff) Next() time.Duration {
	b.tries++
	return b.After(b.tries)
}

// After returns the waiting time after a number of tries, from 1.
func (b *Backoff) After(tries uint) time.Duration {
	wait := float64(b.First)
	for ; tries > 1 && wait < float64(b.Max); tries-- {
		wait *= b.Factor
	}
	return min(time.Duration(wait), b.Max)
}
