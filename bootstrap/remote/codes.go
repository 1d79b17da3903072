package remote

import "errors"

// DiagCode names the entry of the failure catalogue. A hop that failed says
// what it failed with.
func (e *ConnectError) DiagCode() string {
	if e.Kind == Jump {
		var hop *ConnectError
		if errors.As(e.Err, &hop) && (hop.Kind == HostKey || hop.Kind == Config) {
			return hop.DiagCode()
		}
	}
	return connectCodes()[e.Kind]
}

func connectCodes() map[ConnectKind]string {
	return map[ConnectKind]string{
		DNS: "ssh-name-unknown", Refused: "ssh-refused", Filtered: "ssh-filtered", Banner: "ssh-not-ssh", Reset: "ssh-dropped",
		Handshake: "ssh-algorithms", HostKey: "ssh-host-key-changed", Auth: "ssh-no-key-accepted", NoShell: "ssh-no-shell",
		Jump: "ssh-jump-failed", Config: "ssh-config-unusable",
	}
}

// DiagCode names the entry of the failure catalogue.
func (e *SudoError) DiagCode() string { return sudoCodes()[e.Kind] }

func sudoCodes() map[SudoKind]string {
	return map[SudoKind]string{
		SudoPasswordNeeded: "sudo-password-needed", SudoWrongPassword: "sudo-wrong-password",
		SudoNotAllowed: "sudo-not-allowed", SudoAbsent: "sudo-absent",
	}
}

const (
	codeForwarding = "ssh-forwarding-off"
	codeCutOff     = "machine-cut-off"
)

// DiagCode names the entry of the failure catalogue.
func (e *ForwardingError) DiagCode() string { return codeForwarding }

// DiagCode names the entry of the failure catalogue.
func (e *CutOffError) DiagCode() string { return codeCutOff }

// Codes returns every code of the failure catalogue that errors of this package carry.
func Codes() []string {
	out := []string{codeForwarding, codeCutOff}
	for _, c := range connectCodes() {
		out = append(out, c)
	}
	for _, c := range sudoCodes() {
		out = append(out, c)
	}
	return out
}
