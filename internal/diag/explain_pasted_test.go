package diag

import (
	"strings"
	"testing"
)

// pasted are texts as they stand in the threads and pages that the entries name,
// or as the programs print them, by the entry that has to come first.
func pasted() map[string]Code {
	return map[string]Code{
		// machine
		"System has not been booted with systemd as init system (PID 1). Can't operate.":                                                         "no-systemd",
		"channel 2: open failed: administratively prohibited: open failed":                                                                       "ssh-forwarding-off",
		"ssh: connect to host 203.0.113.10 port 22: Connection refused":                                                                          "ssh-refused",
		"dial tcp 203.0.113.10:22: i/o timeout":                                                                                                  "ssh-filtered",
		"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @":                                                                            "ssh-host-key-changed",
		"ubuntu@203.0.113.10: Permission denied (publickey).":                                                                                    "ssh-no-key-accepted",
		"sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper": "sudo-password-needed",
		"sudo: no tty present and no askpass program specified":                                                                                  "sudo-password-needed",
		"sudo: interactive authentication is required":                                                                                           "sudo-password-needed",
		"ubuntu is not in the sudoers file.  This incident will be reported.":                                                                    "sudo-not-allowed",
		"E: Could not get lock /var/lib/dpkg/lock-frontend - open (11: Resource temporarily unavailable)":                                        "package-lock-held",
		"E: Unable to lock the administration directory (/var/lib/dpkg/), is another process using it?":                                          "package-lock-held",
		"E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a' to correct the problem.":                                      "dpkg-interrupted",
		"E: Conflicting values set for option Signed-By regarding source https://nvidia.github.io/libnvidia-container/stable/deb/amd64/ /":       "apt-sources-conflict",
		"write /var/lib/rancher/k3s/agent/containerd/io.containerd.content.v1.content/ingest: no space left on device":                           "disk-too-small",
		"failed to create fsnotify watcher: too many open files":                                                                                 "inotify-low",
		"kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release":   "cgroup-v1-refused",
		`level=fatal msg="failed to find memory cgroup (v2)"`:                                                                                    "cgroup-missing",
		"modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/6.8.0-1021-kvm":                                                "kernel-module-missing",
		"modprobe: FATAL: Module vxlan not found in directory /lib/modules/6.8.0-1021-kvm":                                                       "kernel-module-missing",
		"x509: certificate has expired or is not yet valid: current time 2022-07-27T18:55:59+12:00 is before 2022-07-27T07:45:55Z":               "clock-wrong",
		// k3s and network
		"Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag": "node-password-rejected",
		`level=error msg="failed to get CA certs: Get \"https://127.0.0.1:6444/cacerts\": read tcp 127.0.0.1:39882->127.0.0.1:6444: read: connection reset by peer"`:                                  "server-unreachable",
		`dial tcp 203.0.113.10:6443: i/o timeout`:           "server-unreachable",
		`dial tcp 10.0.0.4:6443: connect: no route to host`: "iptables-reject",
		`Failed to validate connection to cluster at https://10.0.0.4:6443: token CA hash does not match the Cluster CA certificate hash: 000 != ba1`:           "token-ca-mismatch",
		"Waiting to retrieve agent configuration; server is not ready: failed to retrieve configuration from server: not authorized":                            "token-refused",
		"10.0.0.4.8472: [bad udp cksum 0x4a4c -> 0x0e3d!] OTV, flags [I] (0x08), overlay 0":                                                                     "overlay-checksum",
		"Error from server: error dialing backend: dial tcp 10.0.0.5:10250: i/o timeout":                                                                        "kubelet-unreachable",
		"Unable to connect to the server: x509: certificate is valid for 10.43.0.1, 127.0.0.1, 10.0.0.4, not 203.0.113.10":                                      "certificate-name",
		"The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?":                                                     "kubeconfig-local-address",
		"listen tcp 0.0.0.0:6443: bind: address already in use":                                                                                                 "port-in-use",
		`[FATAL] plugin/loop: Loop (127.0.0.1:55953 -> :1053) detected for zone ".", see https://coredns.io/plugins/loop#troubleshooting`:                       "dns-loop",
		`"overlayfs" snapshotter cannot be enabled for "/var/lib/rancher/k3s/agent/containerd", try using "fuse-overlayfs" or "native"`:                         "snapshotter-unsupported",
		"type=AVC msg=audit(1.2:3): avc:  denied  { read } for  pid=1 comm=\"nvidia-smi\" scontext=system_u:system_r:container_t:s0":                            "selinux-policy-missing",
		`unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [node-role.kubernetes.io/worker]`:                                             "node-labels-refused",
		"x509: certificate has expired or is not yet valid: current time 2026-08-27T18:00:00Z is after 2026-08-01T10:00:00Z":                                    "certificates-expired",
		`Failed to pull image "nginx": toomanyrequests: You have reached your unauthenticated pull rate limit.`:                                                 "pull-rate-limit",
		"failed to unmarshal TOML: toml: table runc already exists":                                                                                             "containerd-config-broken",
		`containerd: failed to load TOML: /var/lib/rancher/k3s/agent/etc/containerd/config.toml: (62, 2): duplicated tables`:                                    "containerd-config-broken",
		"Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress":                                                                    "release-pending",
		"Error: INSTALLATION FAILED: cannot re-use a name that is still in use":                                                                                 "release-pending",
		`Shutdown request received: "failed to start container runtime: default runtime nvidia was not found"`:                                                  "default-runtime-missing",
		`container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized`: "node-not-ready",
		// driver
		"Failed to initialize NVML: Driver/library version mismatch":                                                        "driver-version-mismatch",
		"NVRM: API mismatch: the client has the version 550.144.03, but\nNVRM: this kernel module has the version 550.120.": "driver-version-mismatch",
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.":                                     "driver-not-loaded",
		"modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-60-generic":                               "driver-not-loaded",
		"NVRM: RmInitAdapter failed! (0x22:0x56:884)":                                                                       "driver-init-failed",
		"No devices were found": "driver-needs-open",
		"modprobe: ERROR: could not insert 'nvidia': Required key not available":                                                                  "secure-boot-unsigned",
		"NVRM: The NVIDIA probe routine was not called for 8 device(s).":                                                                          "nouveau-loaded",
		"Could not resolve Linux kernel version":                                                                                                  "driver-headers-missing",
		`Failed to pull image "nvcr.io/nvidia/driver:580.105.08-debian13": nvcr.io/nvidia/driver:580.105.08-debian13: not found`:                  "driver-image-missing",
		"failed to load module nvidia-modeset: exit status 1; output=modprobe: ERROR: could not insert 'nvidia_modeset': No such device":          "driver-modules-incomplete",
		"failed to create device node nvidiactl: failed to determine major: invalid device node":                                                  "driver-device-major",
		"CUDA failure 802: system not yet initialized":                                                                                            "fabric-manager-down",
		"fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver version 550.120. Please update":                    "fabric-manager-version",
		"nvidia-uvm: request_free_mem_region() err -34":                                                                                           "cuda-hmm-kaslr",
		"NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:1db6)\nNVRM: installed in this system is not supported by open\nNVRM: nvidia.ko because": "driver-needs-proprietary",
		// toolkit, operator, pods
		`failed to get sandbox runtime: no runtime for "nvidia" is configured`:                                                               "runtime-not-configured",
		`failed to find plugin "bridge" in path [/opt/cni/bin]`:                                                                              "toolkit-cni-replaced",
		"Failed to initialize NVML: Unknown Error":                                                                                           "nvml-lost",
		"Failed to initialize NVML: Insufficient Permissions":                                                                                "nvml-permissions",
		"runc create failed: unable to start container process: error during container init: read status from sync socket":                   "user-namespace-pod",
		"nvidia-container-cli: initialization error: driver rpc error: timed out: unknown":                                                   "toolkit-timeout",
		"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver":                              "smoke-image-too-new",
		"nvidia-container-cli: requirement error: unsatisfied condition: driver>=570":                                                        "smoke-image-too-new",
		"CUDA driver version is insufficient for CUDA runtime version":                                                                       "cuda-insufficient",
		"CUDA error: no kernel image is available for execution on the device":                                                               "smoke-image-too-old",
		"Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected":           "admission-after-restart",
		"Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected": "smoke-admission-refused",
		"Warning: MIG mode is in pending enable state for GPU 00000000:07:00.0: Reset Required":                                              "mig-pending",
		"Unable to disable MIG Mode for GPU 00000000:07:00.0: In use by another client":                                                      "mig-config-failed",
		"'nvidia.com/gpu=0' marked unhealthy: XidCriticalError: Xid=48":                                                                      "gpu-unhealthy",
		"invalid MPS configuration: maximum allowed replicas exceeded: 64 > 48":                                                              "mps-too-many",
		`pods "nvidia-driver-daemonset-" is forbidden: violates PodSecurity "restricted:latest": privileged`:                                 "pod-security",
		"0/2 nodes are available: 2 Insufficient nvidia.com/gpu.":                                                                            "pod-no-free-gpu",
		`Back-off pulling image "m:5000/x:1"; ImagePullBackOff`:                                                                              "smoke-image-pull",
		`exceeded quota: gpus, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=4`:    "pod-quota",
		"/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by nvidia-mig-manager)":                                   "mig-manager-glibc",
		// GPU health
		"NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.":                            "gpu-lost",
		"Unable to determine the device handle for GPU0000:35:00.0: GPU is lost.  Reboot the system to recover this GPU":          "gpu-lost",
		"NVRM: Xid (PCI:0000:41:00): 48, pid=4711, name=python, An uncorrectable double bit error (DBE) has been detected on GPU": "gpu-ecc-uncorrected",
		"NVRM: Xid (PCI:0000:41:00): 64, pid=4711, name=python":                                                                   "gpu-remap-failed",
		"NVRM: Xid (PCI:0000:9b:00): 94, pid=7194, Contained: CE User Channel (0x9).":                                             "gpu-ecc-contained",
		"NVRM: Xid (PCI:0000:41:00): 74, pid=4711, NVLink: fatal error detected on link 5":                                        "gpu-nvlink-error",
		"NVRM: Xid (PCI:0000:c1:00): 119, pid=1234, name=python, Timeout after 6s of waiting for RPC response from GPU0 GSP!":     "gpu-gsp-timeout",
		"NVRM: Xid (PCI:0000:2a:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)":                "gpu-recovery-needed",
		"NVRM: Xid (PCI:0000:01:00): 31, pid=3, name=python, Ch 00000008, intr 00000000. MMU Fault":                               "gpu-application-xid",
		"NVRM: Xid (PCI:0000:01:00): 169, pid=3":                                                                                  "gpu-module-flavour-xid",
		"NVRM: Xid (PCI:0000:cb:00): 109, pid=5, name=python, Ch 00000008, errorString CTX SWITCH TIMEOUT":                        "gpu-xid",
		// training
		"gpu-1:31:88 [0] NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory":                     "memlock-low",
		"ncclUnhandledSystemError: unhandled system error, NCCL version 2.21.5":                                           "shm-small",
		"mount: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.": "nfs-client-missing",
	}
}

// What people paste is named: nearly all by the first entry, all among the first three.
func TestPastedTextsFindTheirEntry(t *testing.T) {
	first, all := 0, pasted()
	for text, want := range all {
		found := ExplainPasted(text)
		if len(found) == 0 {
			found = Alike(text, 3)
		}
		var codes []string
		for _, p := range found[:min(3, len(found))] {
			codes = append(codes, string(p.Code))
		}
		switch at := strings.Join(codes, " "); {
		case len(codes) > 0 && codes[0] == string(want):
			first++
		default:
			t.Errorf("%q: %s, want %s", text, at, want)
		}
	}
	t.Logf("%d of %d texts find their entry first", first, len(all))
}

// Weak fragments lead a person and name nothing by themselves.
func TestLikelyFragmentsClassifyNothing(t *testing.T) {
	for _, text := range []string{"No devices were found", "avc:  denied { read }", "dial tcp 10.0.0.4:6443: connect: no route to host", "reason OOMKilled", "Xid 790 is no Xid", "NVRM: Xid (PCI:0000:41:00): 137, pid=1"} {
		if found := ExplainText(text); len(found) > 0 {
			t.Errorf("%q is classified as %s", text, found[0].Code)
		}
	}
}
