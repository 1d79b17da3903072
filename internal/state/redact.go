package state

import (
	"encoding/json"
	"io"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Mask stands where a secret stood.
const Mask = "********"

// Redactor replaces registered secrets. It is safe for concurrent use; its zero
// value is ready.
type Redactor struct {
	mu      sync.RWMutex
	secrets []string
}

// Add registers a secret, also in the forms that quoting gives it.
func (r *Redactor) Add(secret string) {
	if secret == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	forms := []string{secret, strings.Trim(strconv.Quote(secret), `"`)}
	if quoted, err := json.Marshal(secret); err == nil {
		forms = append(forms, strings.TrimSuffix(strings.TrimPrefix(string(quoted), `"`), `"`))
	}
	// Each line of a secret of several lines, a private key say, is one too.
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= 16 && line != secret {
			forms = append(forms, line)
		}
	}
	r.secrets = append(r.secrets, forms...)
	// The longest first: a secret may hold another.
	sort.SliceStable(r.secrets, func(i, j int) bool { return len(r.secrets[i]) > len(r.secrets[j]) })
}

// String replaces every secret in s.
func (r *Redactor) String(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, Mask)
	}
	return s
}

// Writer redacts what passes to w. A secret that is cut in two by two writes is
// not seen: writers give whole lines.
func (r *Redactor) Writer(w io.Writer) io.Writer { return redactedWriter{r, w} }

type redactedWriter struct {
	r *Redactor
	w io.Writer
}

func (w redactedWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.String(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
