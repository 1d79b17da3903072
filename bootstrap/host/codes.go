package host

import "github.com/gpuctl/gpuctl/internal/diag"

// Codes this package raises.
const (
	CodeContainer       diag.Code = "container-not-vm"
	CodeNoSystemd       diag.Code = "no-systemd"
	CodeOS              diag.Code = "os-unsupported"
	CodeArchitecture    diag.Code = "architecture-unsupported"
	CodeCloudInit       diag.Code = "cloud-init-running"
	CodePackageLock     diag.Code = "package-lock-held"
	CodeDpkg            diag.Code = "dpkg-interrupted"
	CodeKernelModule    diag.Code = "kernel-module-missing"
	CodeDisk            diag.Code = "disk-too-small"
	CodeMemory          diag.Code = "memory-small"
	CodeSwap            diag.Code = "swap-present"
	CodeReboot          diag.Code = "reboot-pending"
	CodeForeign         diag.Code = "foreign-kubernetes"
	CodeForeignCNI      diag.Code = "foreign-cni"
	CodePort            diag.Code = "port-in-use"
	CodePortsOfOthers   diag.Code = "ports-of-another-kubernetes"
	CodeClock           diag.Code = "clock-wrong"
	CodeCgroupV1        diag.Code = "cgroup-v1-refused"
	CodeCgroup          diag.Code = "cgroup-missing"
	CodeUFW             diag.Code = "ufw-blocks"
	CodeFirewalld       diag.Code = "firewalld-blocks"
	CodeIptables        diag.Code = "iptables-reject"
	CodeInputDrop       diag.Code = "input-dropped"
	CodeSecondEngine    diag.Code = "second-container-engine"
	CodeProbeIncomplete diag.Code = "probe-incomplete"
	CodeSameHostname    diag.Code = "hostname-duplicate"
	CodeSameMachineID   diag.Code = "machine-id-duplicate"
	CodeSameMachine     diag.Code = "machine-listed-twice"
	CodeSameAddress     diag.Code = "address-duplicate"
)

// Codes returns every code this package raises.
func Codes() []diag.Code {
	return append(surroundingCodes(), []diag.Code{
		CodeContainer, CodeNoSystemd, CodeOS, CodeArchitecture, CodeCloudInit, CodePackageLock, CodeDpkg,
		CodeKernelModule, CodeDisk, CodeMemory, CodeSwap, CodeReboot, CodeForeign, CodeForeignCNI, CodePort, CodePortsOfOthers,
		CodeClock, CodeCgroupV1, CodeCgroup, CodeUFW, CodeFirewalld, CodeIptables, CodeInputDrop, CodeSecondEngine,
		CodeProbeIncomplete, CodeSameHostname, CodeSameMachineID, CodeSameMachine, CodeSameAddress,
		CodeDiskAbsent, CodeDiskInUse, CodeDiskHides, CodeDiskFormat,
	}...)
}
