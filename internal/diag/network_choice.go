package diag

// choiceProblems are networks that a cluster cannot use, or not as it is asked for.
func choiceProblems() []Problem {
	return []Problem{
		{
			Code: "address-missing", Area: "network", Severity: Blocks,
			Title:     "The machine has no address of the kind that is asked for",
			Symptom:   "the kubelet does not find its node-ip on an interface, or the others do not reach it",
			Cause:     "machines[].privateAddress is on none of the machine's interfaces, or kubernetes.network.useAddress asks for a private or public address where there is none",
			Fix:       []string{"ip -br address, on the machine", "correct machines[].privateAddress or kubernetes.network.useAddress in gpuctl.yaml"},
			DependsOn: []Code{"interface-missing"},
			Reference: k3sDocs + "cli/agent",
		},
		{
			Code: "no-common-network", Area: "network", Severity: Blocks,
			Title:     "The machine and the others share no network",
			Symptom:   "others have public addresses alone, this one a private one alone: neither reaches the other",
			Cause:     "the machines are at different providers or in different networks, and one has no public address",
			Fix:       []string{"give the machine a public address at its provider", "or attach all machines to one private network", "or connect them by an overlay first (WireGuard, Tailscale) and set machines[].privateAddress"},
			DependsOn: []Code{"nat-ports-only", "address-missing"},
			Reference: k3sDocs + "networking/distributed-multicloud",
		},
		{
			Code: "overlay-in-clear", Area: "network", Severity: Warns,
			Title:     "Pod traffic crosses public addresses in clear",
			Symptom:   "kubernetes.network.backend is vxlan or host-gw, and the machines reach each other by public addresses",
			Cause:     "neither backend encrypts",
			Fix:       []string{"kubernetes.network.backend: auto, which takes wireguard-native here"},
			Reference: k3sDocs + "networking/basic-network-options",
		},
		{
			Code: "host-gw-routed", Area: "network", Severity: Blocks,
			Title:     "host-gw needs machines in one network",
			Symptom:   "pods on different nodes do not reach each other",
			Cause:     "host-gw makes each node the gateway to its pods; a router between the nodes does not know them",
			Fix:       []string{"kubernetes.network.backend: auto or vxlan"},
			Reference: k3sDocs + "networking/basic-network-options",
		},
		{
			Code: "address-changed", Area: "network", Severity: Informs,
			Title:     "The machine has another address than k3s was told",
			Symptom:   "after a stop and a start the node is NotReady, or agents do not reach the server",
			Cause:     "the provider gave a new private address",
			Fix:       []string{"gpuctl apply: writes the new address on this machine, and the server's on all agents"},
			Reference: k3sDocs + "cli/agent",
		},
	}
}
