package nearest

import "testing"

func TestOf(t *testing.T) {
	names := []string{"user", "port", "identityFile", "hostKeys", "jump"}
	for got, want := range map[string]string{
		"usr": "user", "USER": "user", "identiyFile": "identityFile", "hostkey": "hostKeys", "jumps": "jump",
		"password": "", "": "", "x": "", "user": "user",
	} {
		if near := Of(got, names); near != want {
			t.Errorf("%q: %q, want %q", got, near, want)
		}
	}
	if near := Within("usr", names, 0); near != "" {
		t.Errorf("without an edit %q is near", near)
	}
	if near := Of("cat", []string{"bat", "hat"}); near != "bat" {
		t.Errorf("of two equally near %q is taken", near)
	}
}
