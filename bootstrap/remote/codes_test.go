package remote

import "testing"

func TestEveryKindHasItsCode(t *testing.T) {
	for kind, code := range map[ConnectKind]string{
		DNS: "ssh-name-unknown", Refused: "ssh-refused", Filtered: "ssh-filtered", Banner: "ssh-not-ssh", Reset: "ssh-dropped", Handshake: "ssh-algorithms",
		HostKey: "ssh-host-key-changed", Auth: "ssh-no-key-accepted", NoShell: "ssh-no-shell", Jump: "ssh-jump-failed", Config: "ssh-config-unusable",
	} {
		if got := (&ConnectError{Kind: kind}).DiagCode(); got != code {
			t.Errorf("%s: %q, want %q", kind, got, code)
		}
	}
	hop := &ConnectError{Kind: Jump, Err: &ConnectError{Kind: HostKey}}
	if got := hop.DiagCode(); got != "ssh-host-key-changed" {
		t.Errorf("a jump host with another key: %q", got)
	}
	for kind, code := range map[SudoKind]string{
		SudoPasswordNeeded: "sudo-password-needed", SudoWrongPassword: "sudo-wrong-password", SudoNotAllowed: "sudo-not-allowed", SudoAbsent: "sudo-absent",
	} {
		if got := (&SudoError{Kind: kind}).DiagCode(); got != code {
			t.Errorf("%s: %q, want %q", kind, got, code)
		}
	}
	if (&ForwardingError{}).DiagCode() != "ssh-forwarding-off" || (&CutOffError{}).DiagCode() != "machine-cut-off" {
		t.Error("forwarding or cut off")
	}
}
