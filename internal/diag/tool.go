package diag

// toolProblems are ends of a run that no single machine is to blame for.
func toolProblems() []Problem {
	return []Problem{
		{
			Code: "not-converged", Area: "tool", Severity: Blocks,
			Title:   "A change was made and is still needed",
			Symptom: "done, but still needed: the same action is pending for the same reason",
			Cause:   "something on the machine undoes it: configuration management, a provider's agent, or another installation",
			Fix:     []string{"look at the file or unit the action names: who changed it last?", "switch that program off on the machine, then gpuctl apply"},
			Match:   []string{"done, but still needed"},
		},
		{
			Code: "api-not-there", Area: "cluster", Severity: Blocks,
			Title:   "The Kubernetes API does not answer",
			Symptom: "connection refused or no route through the server's SSH connection",
			Cause:   "k3s on the server is down or starting",
			Fix:     []string{"on the server: systemctl status k3s; journalctl -u k3s -e", "gpuctl apply"},
		},
		{
			Code: "wait-ended", Area: "tool", Severity: Blocks,
			Title:   "A wait reached its limit",
			Symptom: "not within ...: the error carries the last reason",
			Cause:   "what was waited for takes longer, or never comes",
			Fix:     []string{"gpuctl doctor", "gpuctl apply again: it goes on where it is"},
		},
		{
			Code: "mirror-answers-html", Area: "network", Severity: Blocks,
			Title:   "A download is a web page and not the file",
			Symptom: "the checksum differs and the text begins with <html>",
			Cause:   "a captive portal, a login page, or a wrong address of a mirror",
			Fix:     []string{"curl -fsSLI URL on the machine: Content-Type", "correct sources or proxy"},
			Match:   []string{"<!doctype html", "<html"},
		},
	}
}
