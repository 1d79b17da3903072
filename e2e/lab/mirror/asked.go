package mirror

import (
	"strings"
	"sync"
)

// Asked remembers which paths were asked for. The zero value is ready.
type Asked struct {
	mu    sync.Mutex
	paths []string
}

// Add remembers a path.
func (a *Asked) Add(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paths = append(a.paths, path)
}

// For says whether a path that holds a word was asked for.
func (a *Asked) For(word string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, path := range a.paths {
		if strings.Contains(path, word) {
			return true
		}
	}
	return false
}
