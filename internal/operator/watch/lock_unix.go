//go:build unix

package watch

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a file for this process until it is closed, and reports false if another one has taken it. A file system without locks has
// none to take.
func lock(file *os.File) bool {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK)
}

// unlock gives back what lock has taken. To close the file does not: a process that is being started has the file, too, until it runs its
// program.
func unlock(file *os.File) {
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) // a file system without locks has none to give back
}
