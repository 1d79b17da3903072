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
			Code: "bundle-lacks", Area: "tool", Severity: Blocks,
			Title:   "The offline bundle lacks what a machine needs",
			Symptom: "FILE (set ...) has no k3s, packages, images or chart for this machine",
			Cause:   "the bundle was made for another set, architecture or operating system than gpuctl.yaml and the machine have",
			Fix:     []string{"gpuctl bundle create with the same gpuctl.yaml, --arch and --os of the machines", "or change the versions in gpuctl.yaml to those of: gpuctl bundle verify FILE"},
		},
		{
			Code: "api-not-there", Area: "cluster", Severity: Blocks,
			Title:     "The Kubernetes API does not answer",
			Symptom:   "connection refused or no route through the server's SSH connection",
			Cause:     "k3s on the server is down or starting",
			Fix:       []string{"on the server: systemctl status k3s; journalctl -u k3s -e", "gpuctl apply"},
			DependsOn: k3sDown(),
		},
		{
			Code: "wait-ended", Area: "tool", Severity: Blocks,
			Title:   "A wait reached its limit",
			Symptom: "not within ...: the error carries the last reason",
			Cause:   "what was waited for takes longer, or never comes",
			Fix:     []string{"gpuctl doctor", "gpuctl apply again: it goes on where it is"},
		},
		{
			Code: "chart-unavailable", Area: "network", Severity: Blocks,
			Title:     "A chart cannot be fetched",
			Symptom:   "fetching chart ...: 404, or no such host",
			Cause:     "the repository or its mirror lacks this chart or version, or is not reached from this computer",
			Fix:       []string{"curl -fsSL REPOSITORY/index.yaml | grep -A3 NAME", "correct sources.charts, or the version in gpu.operator.version"},
			Match:     []string{"fetching chart"},
			DependsOn: []Code{"chart-digest-differs", "mirror-answers-html"},
		},
		{
			Code: "chart-digest-differs", Area: "network", Severity: Blocks,
			Title:   "A chart is not the pinned one",
			Symptom: "digest is sha256:..., wanted sha256:...",
			Cause:   "the mirror has another archive under this version, or something on the way answers with a page of its own",
			Fix:     []string{"fetch it from the vendor's repository and compare; mend the mirror", "a chart of one's own needs a set file with its digest"},
			Match:   []string{"digest is sha256:"},
		},
		{
			Code: "k3s-unavailable", Area: "network", Severity: Blocks,
			Title:   "k3s cannot be downloaded",
			Symptom: "downloading k3s: 404, or no answer",
			Cause:   "the source lacks this version, neither the machine nor this computer reaches it, or the machine has neither curl nor wget",
			Fix:     []string{"curl -fsSLI SOURCE/VERSION/k3s on the machine", "sources.k3s: a mirror; proxy where one is needed"},
			Match:   []string{"downloading k3s: ", "downloading checksums of k3s", "has no checksum of k3s", "neither curl nor wget is installed"},
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
