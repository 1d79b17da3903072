package k3s

import "fmt"

// Older says whether release a is older than b; a text that is no release is not.
func Older(a, b string) bool {
	_, okA := minor(a)
	_, okB := minor(b)
	return okA && okB && compareVersions(a, b) < 0
}

// kubeletLag is how many minors a kubelet may be behind the API server.
// https://kubernetes.io/releases/version-skew-policy
const kubeletLag = 3

// Skew says why servers of release want could not serve an agent of release
// have; empty where they can.
func Skew(have, want string) string {
	if gap := minorGap(have, want); gap > kubeletLag {
		return fmt.Sprintf("its kubelet is %s, %d minor versions behind %s; %d are supported", have, gap, want, kubeletLag)
	}
	return ""
}

// Releases around etcd's steps, from go.mod per branch of k3s-io/k3s and its
// release notes: 1.34 brought etcd 3.6, 1.37 etcd 3.7. A 3.6 must follow a 3.5.26
// or newer, else members that were removed long ago may appear again
// (k3s-io/k3s#13485); 1.33.7+k3s3 is the first with it.
const (
	firstEtcd36   = 34
	beforeEtcd36  = "v1.33.7+k3s3"
	firstEtcd37   = 37
	beforeEtcd37  = 34
	etcdReference = "k3s-io/k3s#13485"
)

// EtcdStep says why a server's etcd must not go from one release to the other
// in one step; empty where it may.
func EtcdStep(have, want string) string {
	from, okA := minor(have)
	to, okB := minor(want)
	switch {
	case !okA || !okB:
		return ""
	case from < firstEtcd36 && to >= firstEtcd36 && compareVersions(have, beforeEtcd36) < 0:
		return fmt.Sprintf("%s has an etcd older than 3.5.26, and %s has 3.6: bring all servers to %s or a later 1.33 first, and let them run for a while (%s)", have, want, beforeEtcd36, etcdReference)
	case from < beforeEtcd37 && to >= firstEtcd37:
		return fmt.Sprintf("%s has etcd 3.5, and %s has 3.7, which follows 3.6 alone", have, want)
	}
	return ""
}
