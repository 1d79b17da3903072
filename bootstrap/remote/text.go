package remote

import (
	"bytes"
	"strings"
)

// Quote returns s as one word of a POSIX shell, in single quotes where needed.
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, needsQuotes) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// QuoteAll quotes each word and joins them with blanks.
func QuoteAll(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

func needsQuotes(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("_-./:=@%+,", r)
}

// Mask stands for a secret in errors and logs.
const Mask = "********"

// Redact replaces every secret in text by Mask. Empty secrets are ignored.
func Redact(text []byte, secrets []string) []byte {
	for _, s := range secrets {
		if s != "" {
			text = bytes.ReplaceAll(text, []byte(s), []byte(Mask))
		}
	}
	return text
}

// tailBytes is how much of each output stream an error keeps.
const tailBytes = 8 << 10

// Tail returns the end of an output stream as errors keep it: at most 8 KiB, secrets masked.
func Tail(text []byte, secrets []string) []byte {
	text = Redact(text, secrets)
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return bytes.Clone(text)
}
