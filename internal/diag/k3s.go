package diag

const (
	k3sDocs   = "https://docs.k3s.io/"
	k3sSource = "https://github.com/k3s-io/k3s/"
)

// k3sProblems are failures of k3s itself: joining, starting, its configuration.
// Wordings were seen on k3s v1.36.3 or read in its source.
func k3sProblems() []Problem {
	return []Problem{
		{
			Code: "node-password-rejected", Aliases: []string{"B1", "F14"}, Area: "cluster", Severity: Blocks,
			Title:   "The server refuses the node's password",
			Symptom: "the agent waits for ever: Node password rejected, duplicate hostname",
			Cause:   "a machine was rebuilt under the name of an earlier node whose password secret is still there, or two machines have the same name",
			Fix: []string{
				"kubectl get node NODE -o wide: a Ready node with another address means two machines have one name; rename one of them in gpuctl.yaml",
				"else: gpuctl node replace NODE (it deletes the Node and the secret kube-system/NODE.node-password.k3s and joins the machine again)",
			},
			Match:     []string{"node password rejected", "unable to verify password for node"},
			Reference: k3sDocs + "architecture",
		},
		{
			Code: "token-ca-mismatch", Aliases: []string{"B3"}, Area: "cluster", Severity: Blocks,
			Title:     "The join token belongs to another cluster",
			Symptom:   "token CA hash does not match the Cluster CA certificate hash",
			Cause:     "the server was reinstalled, or its CA was replaced, after the token was written on this machine",
			Fix:       []string{"gpuctl apply: reads the token from the server again and writes it on the machine"},
			Match:     []string{"token ca hash does not match", "invalid token ca hash length"},
			Reference: "k3s-io/k3s#3727",
		},
		{
			Code: "token-refused", Area: "cluster", Severity: Blocks,
			Title:   "The server does not accept the join token",
			Symptom: "Waiting to retrieve agent configuration; server is not ready: ... not authorized",
			Cause:   "the token's secret is not the one the server has; tokens were rotated or the server was restored",
			Fix:     []string{"gpuctl apply: reads the token from the server again and writes it on the machine"},
			Match: []string{
				"failed to retrieve configuration from server: not authorized", "failed to bootstrap cluster data: not authorized",
				"401 unauthorized", "invalid username/password combination",
			},
			Reference: k3sSource + "blob/main/pkg/clientaccess/token.go",
		},
		{
			Code: "server-unreachable", Aliases: []string{"B2"}, Area: "network", Severity: Blocks,
			Title:   "The machine cannot reach the server's port 6443",
			Symptom: "failed to get CA certs: EOF, connection reset, or context deadline exceeded",
			Cause:   "a firewall closes TCP 6443 between the machines, the address is not the right one, or k3s on the server is down",
			Fix: []string{
				"on the machine: curl -k https://SERVER:6443/ping (pong is right)",
				"on the server: systemctl status k3s; open TCP 6443 from the agents, or set privateAddress of the server",
			},
			Match:     []string{"failed to get ca certs", "failed to validate connection to cluster"},
			Likely:    []string{":6443: i/o timeout", ":6443: connect: connection timed out"},
			DependsOn: []Code{"token-ca-mismatch"},
			Reference: "k3s-io/k3s#12806",
		},
		{
			Code: "k3s-unknown-key", Area: "cluster", Severity: Blocks,
			Title:     "k3s does not know a configuration key",
			Symptom:   "flag provided but not defined, restart every 5 seconds",
			Cause:     "an agent exits at a key it does not know, server keys included",
			Fix:       []string{"remove the key from /etc/rancher/k3s/config.yaml, config.yaml.d or config.agent in gpuctl.yaml"},
			Match:     []string{"flag provided but not defined"},
			Reference: k3sSource + "blob/main/pkg/configfilearg/defaultparser.go",
		},
		{
			Code: "k3s-config-invalid", Area: "cluster", Severity: Blocks,
			Title:     "A k3s configuration file is not valid YAML",
			Symptom:   "k3s exits with yaml: line N",
			Cause:     "a file in /etc/rancher/k3s cannot be parsed",
			Fix:       []string{"correct the named line in /etc/rancher/k3s/config.yaml, config.yaml.d/*.yaml or registries.yaml"},
			Match:     []string{"yaml: line", "yaml: unmarshal errors", "did not find expected node content"},
			Reference: k3sDocs + "installation/configuration",
		},
		{
			Code: "k3s-config-conflict", Area: "cluster", Severity: Blocks,
			Title:     "The machine's own k3s configuration says something else",
			Symptom:   "/etc/rancher/k3s/config.yaml or a drop-in sets a key gpuctl sets too, with another value",
			Cause:     "the image or an earlier installation left a k3s configuration",
			Fix:       []string{"delete the key from the file on the machine, or say the same value in gpuctl.yaml (kubernetes.config, machines[].dataDir)"},
			Reference: "k3s-io/k3s#2228",
		},
		{
			Code: "cluster-other", Area: "cluster", Severity: Blocks,
			Title:   "The machine belongs to another cluster",
			Symptom: "/etc/rancher/k3s/gpuctl.id on the machine is not the id of this cluster",
			Cause:   "two gpuctl.yaml name the same machine, two clusters have the same metadata.name on this computer, or an address was given to another machine",
			Fix: []string{
				"look which cluster it is: cat /etc/rancher/k3s/gpuctl.id on the machine and on the server",
				"two files with one metadata.name: give one of them another name (the state directory goes by the name)",
				"to move the machine: gpuctl node remove NAME with the file of the cluster that has it. Where that cluster is gone for good: k3s-uninstall.sh or k3s-agent-uninstall.sh on the machine",
			},
			Reference: "alexellis/k3sup#316",
		},
		{
			Code: "k3s-foreign", Area: "cluster", Severity: Blocks,
			Title:     "k3s is installed, but not by gpuctl",
			Symptom:   "a k3s unit without gpuctl's configuration beside it",
			Cause:     "the machine is, or was, a member of another cluster",
			Fix:       []string{"to keep that cluster: kubernetes.existing in gpuctl.yaml", "to give the machine to this one: /usr/local/bin/k3s-uninstall.sh or k3s-agent-uninstall.sh, or gpuctl reset --nodes NAME"},
			Reference: k3sDocs + "installation/uninstall",
		},
		{
			Code: "k3s-other-role", Area: "cluster", Severity: Blocks,
			Title:     "The machine runs k3s in the other role",
			Symptom:   "k3s.service on an agent, or k3s-agent.service on a server",
			Cause:     "the role changed in gpuctl.yaml; k3s does not change it in place",
			Fix:       []string{"gpuctl node remove NAME, then gpuctl apply; or set the role back"},
			Reference: k3sDocs + "architecture",
		},
		{
			Code: "k3s-downgrade", Area: "cluster", Severity: Blocks,
			Title:     "The wanted k3s is older than the installed one",
			Symptom:   "plan shows a lower version than the machine has",
			Cause:     "a datastore that a newer release has written cannot be read by an older one",
			Fix:       []string{"set kubernetes.version to the installed release or a newer one; going back needs a snapshot from before"},
			Reference: k3sDocs + "upgrades/roll-back",
		},
		{
			Code: "k3s-skips-minor", Area: "cluster", Severity: Blocks,
			Title:     "The upgrade leaves out a minor version",
			Symptom:   "installed and wanted k3s are more than one minor apart",
			Cause:     "Kubernetes supports upgrades of the control plane by one minor at a time",
			Fix:       []string{"upgrade to the latest patch of each minor version in between first: gpuctl upgrade --to VERSION"},
			Reference: k3sDocs + "upgrades",
		},
		{
			Code: "k3s-upgrade-waits", Area: "cluster", Severity: Informs,
			Title:     "Machines run an older k3s than the file or its set names",
			Symptom:   "gpuctl.yaml or the set names a newer release than the machines have",
			Cause:     "apply leaves releases as they are: an upgrade restarts servers and drains nodes",
			Fix:       []string{"gpuctl upgrade: servers first, then agents, each drained and proven again"},
			Reference: k3sDocs + "upgrades",
		},
		{
			Code: "k3s-skew", Area: "cluster", Severity: Blocks,
			Title:     "An agent would be too old for the new servers",
			Symptom:   "its kubelet is more than three minor versions behind",
			Cause:     "Kubernetes supports kubelets up to three minor versions older than the API server",
			Fix:       []string{"upgrade the agents first, to the release that the servers have now: gpuctl upgrade --to VERSION"},
			Reference: "https://kubernetes.io/releases/version-skew-policy",
		},
		{
			Code: "k3s-etcd-step", Area: "cluster", Severity: Blocks,
			Title:     "The upgrade leaves out a step of etcd",
			Symptom:   "etcd 3.6 would follow a 3.5 older than 3.5.26, or 3.7 a 3.5",
			Cause:     "members that were removed long ago may come back and the servers fail with 'too many learner'",
			Fix:       []string{"gpuctl upgrade --to v1.33.7+k3s3 or a later 1.33, then go on"},
			Reference: "k3s-io/k3s#13485",
		},
		{
			Code: "k3s-crash-loop", Area: "cluster", Severity: Blocks,
			Title:     "k3s starts again and again",
			Symptom:   "the unit's NRestarts grows; k3s may end with exit code 0",
			Cause:     "a component ends right after start; the journal names it",
			Fix:       []string{"journalctl -u k3s -u k3s-agent -e; for containerd: tail /var/lib/rancher/k3s/agent/containerd/containerd.log"},
			DependsOn: k3sEnds(),
			Reference: k3sSource + "blob/main/pkg/signals",
		},
		{
			Code: "k3s-stopped", Area: "cluster", Severity: Blocks,
			Title:   "k3s was stopped",
			Symptom: "the unit is inactive; nobody starts it",
			Cause:   "systemctl stop, k3s-killall.sh, or an installer that ended half way",
			Fix:     []string{"on the machine: systemctl start k3s-agent (on a server: k3s)", "gpuctl apply"},
		},
		{
			Code: "k3s-start-timeout", Area: "cluster", Severity: Blocks,
			Title:     "k3s did not come up in time",
			Symptom:   "the unit stays activating",
			Cause:     "the last line of its journal says what it waits for; slow disks and image imports take long too",
			Fix:       []string{"journalctl -u k3s -u k3s-agent -e, then gpuctl apply again: it goes on where it is"},
			Reference: k3sDocs + "faq",
		},
		{
			Code: "k3s-binary-mismatch", Area: "cluster", Severity: Blocks,
			Title:   "The downloaded k3s is not the pinned one",
			Symptom: "SHA-256 differs",
			Cause:   "a mirror serves other bytes, or a proxy answers with a page of its own",
			Fix:     []string{"compare: curl -fsSL SOURCE/VERSION/sha256sum-amd64.txt", "correct sources.k3s or the mirror's copy"},
			Match:   []string{"sha-256 of k3s differs"},
		},
		{
			Code: "port-in-use", Area: "cluster", Severity: Blocks,
			Title:     "A port k3s needs is taken",
			Symptom:   "bind: address already in use (6443, 10250, 2379)",
			Cause:     "another process listens there: k3s cannot, and its kubelet ends (seen with a second k3s server beside a running one)",
			Fix:       []string{"ss -ltnp 'sport = :6443 or sport = :10250'", "stop and remove the other cluster, or /usr/local/bin/k3s-killall.sh"},
			Match:     []string{"address already in use"},
			Reference: k3sDocs + "installation/requirements",
		},
		{
			Code: "ports-of-another-kubernetes", Aliases: []string{"B16"}, Area: "cluster", Severity: Warns,
			Title:      "The process on k3s's ports is that of another Kubernetes",
			Symptom:    "kube-apiserver, kubelet, kubelite or k0s listens at 6443, 10250, 2379 or 10010",
			Cause:      "kubeadm, microk8s, k0s or RKE2 runs on the machine, or is left over",
			Fix:        []string{"remove it with its own tool: kubeadm reset, snap remove microk8s, k0s reset, rke2-uninstall.sh"},
			DependsOn:  []Code{"foreign-kubernetes"},
			Reference:  k3sDocs + "installation/requirements",
			Unverified: true,
		},
		{
			Code: "registries-invalid", Area: "cluster", Severity: Blocks,
			Title:     "registries.yaml is not right",
			Symptom:   "k3s does not start and prints little",
			Cause:     "mirrors or configs is not a map, or endpoint is not a list; one missing colon is enough",
			Fix:       []string{"correct /etc/rancher/k3s/registries.yaml at the named line", "it belongs on every node, mode 0600, and takes effect at a restart of k3s"},
			Reference: "k3s-io/k3s#8677",
		},
		{
			Code: "registries-wrong-place", Area: "cluster", Severity: Warns,
			Title:     "registries.yaml lies among the manifests",
			Symptom:   "failed to process .../server/manifests/registries.yaml: Object 'Kind' is missing",
			Cause:     "the file was put where k3s looks for Kubernetes objects",
			Fix:       []string{"mv it to /etc/rancher/k3s/registries.yaml on every node and restart k3s"},
			Match:     []string{"manifests/registries.yaml: object 'kind' is missing"},
			Reference: "k3s-io/k3s#8677",
		},
		{
			Code: "node-labels-refused", Aliases: []string{"B21"}, Area: "cluster", Severity: Blocks,
			Title:     "The kubelet may not set these labels on its node",
			Symptom:   "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels",
			Cause:     "node-label in the k3s configuration carries a label of Kubernetes' own domains",
			Fix:       []string{"remove it from node-label and set it through groups[].labels: gpuctl uses the API for such labels"},
			Match:     []string{"labels specified with --node-labels"},
			Reference: k3sDocs + "advanced",
		},
		{
			Code: "labels-at-registration", Aliases: []string{"B22"}, Area: "cluster", Severity: Informs,
			Title:     "A taint or label of the k3s configuration had no effect",
			Symptom:   "node-taint changed in the configuration, the node did not",
			Cause:     "taints are set at first registration only, and a label taken out stays on the node",
			Fix:       []string{"change them in gpuctl.yaml: gpuctl apply sets them through the API"},
			Reference: k3sDocs + "advanced",
		},
		{
			Code: "certificates-expired", Aliases: []string{"B23"}, Area: "cluster", Severity: Blocks,
			Title:     "The cluster's certificates have expired",
			Symptom:   "x509: certificate has expired or is not yet valid",
			Cause:     "k3s renews its 365-day certificates only when it starts, in their last 120 days; or a clock is wrong",
			Fix:       []string{"timedatectl: is the clock right?", "systemctl restart k3s (servers), then k3s-agent (agents); k3s certificate check shows the dates"},
			Match:     []string{"x509: certificate has expired or is not yet valid", "certificate has expired"},
			DependsOn: []Code{"clock-wrong"},
			Reference: "k3s-io/k3s#3047",
		},
	}
}

// k3sDown are the ways in which k3s of a machine does not run.
func k3sDown() []Code {
	return append(k3sEnds(), "k3s-stopped", "k3s-crash-loop", "k3s-start-timeout")
}

// k3sEnds are the causes that its log names.
func k3sEnds() []Code {
	return []Code{
		"node-password-rejected", "token-ca-mismatch", "token-refused", "server-unreachable", "k3s-unknown-key", "k3s-config-invalid",
		"default-runtime-missing", "containerd-config-broken", "certificates-expired", "port-in-use", "etcd-duplicate-name", "etcd-not-member",
		"datastore-other-token", "datastore-older-than-disk", "snapshotter-unsupported", "node-labels-refused", "interface-missing", "clock-wrong",
	}
}
