package bootstrap

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scrubber takes out of a text what does not belong into other people's hands.
// Addresses and names become pseudonyms that stay the same for one cluster;
// whatever looks like a secret is masked.
type scrubber struct {
	key     []byte
	secrets []string
	// names maps words (host names, users) to what stands for them.
	names map[string]string

	dashed, four, six, mac, login, home, account, long, assignment *regexp.Regexp
	forms                                                          []*regexp.Regexp
}

// newScrubber makes one whose pseudonyms come from key.
func newScrubber(key string, secrets []string, names map[string]string) scrubber {
	return scrubber{
		key: []byte(key), secrets: secrets, names: names,
		dashed:     regexp.MustCompile(`\b\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}\b`),
		four:       regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`),
		six:        regexp.MustCompile(`(?i)(?:\b[0-9a-f]{1,4}|:)(?::[0-9a-f]{0,4}){2,7}(?:%[a-z0-9]+)?`),
		mac:        regexp.MustCompile(`(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b`),
		login:      regexp.MustCompile(`\b[A-Za-z_][A-Za-z0-9_.-]*@`),
		home:       regexp.MustCompile(`/(home|Users)/[^/\s"':]+`),
		account:    regexp.MustCompile(`\b(user|login|account) [A-Za-z_][A-Za-z0-9_.-]*`),
		long:       regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`),
		assignment: regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|client-key-data|client-certificate-data|credentials?|authorization)[A-Za-z0-9_-]*\\?["']?\s*[=:]\s*\\?["']?)([^\s"',;&\\{}\[\]]+)`),
		forms:      secretForms(),
	}
}

const mask = "********"

// kept are addresses that k3s uses everywhere and that say nothing of a cluster.
func kept(a netip.Addr) bool {
	for _, p := range []string{"10.42.0.0/16", "10.43.0.0/16", "127.0.0.0/8", "0.0.0.0/32", "::/127"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return true
		}
	}
	return false
}

// secretForms are how secrets look where a program printed one by mistake.
func secretForms() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`),
		regexp.MustCompile(`K10[0-9a-fA-F]{16,}(::[^\s"']+)?`),
		regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+`),
		regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`),
		regexp.MustCompile(`\b(nvapi-|hf_|ghp_|gho_|glpat-|sk-|xox[bp]-|AKIA)[A-Za-z0-9_-]{8,}`),
	}
}

// scrub is text without addresses, names and secrets.
func (s scrubber) scrub(text string) string {
	for _, secret := range s.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, mask)
		}
	}
	for _, form := range s.forms {
		text = form.ReplaceAllString(text, mask)
	}
	text = s.assignment.ReplaceAllStringFunc(text, func(m string) string {
		part := s.assignment.FindStringSubmatch(m)
		if _, err := strconv.ParseFloat(part[2], 64); err == nil || slices.Contains([]string{"true", "false", "null"}, part[2]) {
			return m // counts and switches, which JSON wants as they are
		}
		return part[1] + mask
	})
	text = s.long.ReplaceAllStringFunc(text, dense)
	text = s.home.ReplaceAllString(text, "/$1/user")
	text = s.login.ReplaceAllString(text, "user@")
	text = s.account.ReplaceAllString(text, "$1 user")
	for name, stands := range s.names {
		text = word(name).ReplaceAllString(text, "${1}"+stands+"${2}")
		text = word(name).ReplaceAllString(text, "${1}"+stands+"${2}") // neighbours share what is between them
	}
	text = s.mac.ReplaceAllStringFunc(text, func(m string) string { return s.pseudonym("mac", strings.ToLower(m)) })
	text = s.four.ReplaceAllStringFunc(text, s.address)
	text = s.dashed.ReplaceAllStringFunc(text, func(m string) string {
		dots := strings.ReplaceAll(m, "-", ".")
		if changed := s.address(dots); changed != dots {
			return changed
		}
		return m
	})
	return s.six.ReplaceAllStringFunc(text, s.address)
}

// address leaves what is no address as it is.
func (s scrubber) address(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil || kept(a) {
		return text
	}
	return s.pseudonym("ip", a.WithZone("").String())
}

// pseudonym cannot be turned back without the key, which stays on this computer.
func (s scrubber) pseudonym(kind, value string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(kind + "\n" + value))
	return kind + "-" + hex.EncodeToString(h.Sum(nil))[:8]
}

// dense masks long words of upper and lower case letters and digits, which are
// keys more often than not; hexadecimal sums and paths are not touched.
func dense(text string) string {
	if strings.ContainsAny(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(text, "ghijklmnopqrstuvwxyz") && strings.ContainsAny(text, "0123456789") {
		return mask
	}
	return text
}

// word finds a name that is not part of a longer one.
func word(name string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^A-Za-z0-9_-])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9_-])`)
}
