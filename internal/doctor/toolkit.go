package doctor

import "strings"

// toolkitTarget looks at which containerd an operator's toolkit was pointed at.
// k3s (and rke2) run their own, with a configuration of its own below their data
// directory; the toolkit's default is the system's /etc/containerd/config.toml.
func (e *exam) toolkitTarget(name, socket, config string) {
	own := strings.Contains(socket, "/run/k3s/")
	switch {
	case config == "/dev/null":
		// NVIDIA/nvidia-container-toolkit#982: k3s finds the runtime by itself then, at its next start.
		e.raise("toolkit-writes-nowhere", "", "%s: CONTAINERD_CONFIG is /dev/null", name)
	case strings.HasSuffix(config, ".tmpl"):
		// NVIDIA/gpu-operator#992: works until the next reboot.
		e.raise("containerd-template-by-toolkit", "", "%s: CONTAINERD_CONFIG is %s", name, config)
	case own && config == "" && len(e.seen.SecondEngines) > 0:
		// Enough by itself from operator 25.3 on, but for a containerd of Docker's on the
		// PATH: the toolkit asks that one for its configuration.
		e.raise("toolkit-other-containerd", "", "%s: CONTAINERD_SOCKET is %s, CONTAINERD_CONFIG is not set, and a second containerd is on %s",
			name, socket, strings.Join(e.seen.SecondEngines, ", "))
	case own && strings.HasPrefix(config, "/etc/containerd/"):
		e.raise("toolkit-other-containerd", "", "%s: CONTAINERD_SOCKET is %s and CONTAINERD_CONFIG %s", name, socket, config)
	case !own && strings.Contains(config, "/agent/etc/containerd/"):
		e.raise("toolkit-other-containerd", "", "%s: CONTAINERD_CONFIG is %s and CONTAINERD_SOCKET %s", name, config, orNone(socket))
	}
}

func orNone(s string) string {
	if s == "" {
		return "is not set: it signals /run/containerd/containerd.sock"
	}
	return s
}
