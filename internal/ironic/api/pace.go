package api

import (
	"sync"
	"time"
)

// paceFor is how long the time of an answer counts at least.
const paceFor = 5 * time.Minute

// pace is how long answers take. It is safe for concurrent use.
type pace struct {
	mu           sync.Mutex
	since        time.Time     // when the present period has begun
	now, earlier time.Duration // the slowest answer of the period, and of the one before
}

// note counts an answer.
func (p *pace) note(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.since) > paceFor {
		p.since, p.now, p.earlier = time.Now(), 0, p.now
	}
	p.now = max(p.now, took)
}

func (p *pace) slowest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.now, p.earlier)
}
