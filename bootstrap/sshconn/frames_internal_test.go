package sshconn

import "testing"

// A relayed peer may end what it says with the byte that marks begin with and
// then wait for an answer; holding that byte back is a standstill.
func TestALiveStreamIsNeverHeldBack(t *testing.T) {
	for live, want := range map[bool]string{true: "hello\x1e", false: "hello"} {
		var got string
		f := frames{mark: []byte("\x1emark"), live: live, header: func([]string) {}, data: func(p []byte) error { got += string(p); return nil }}
		if err := f.feed([]byte("noise\x1emarkrun 1 2\nhello\x1e")); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("live %v: got %q at once, want %q", live, got, want)
		}
		if err := f.feed([]byte("more\x1emarkend\ntrash")); err != nil {
			t.Fatal(err)
		}
		if got != "hello\x1emore" {
			t.Errorf("live %v: got %q in the end", live, got)
		}
	}
}
