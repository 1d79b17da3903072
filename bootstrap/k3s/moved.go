package k3s

import (
	_ "embed"
	"strings"
)

// movedBody is read-only; embedding needs a variable.
//
//go:embed script/moved.sh
var movedBody string

// moved says whether etcd on this server was told another address. k3s finds
// itself among the members by name and address and stops where it does not:
// "this server is not a member of the etcd cluster" (k3s pkg/etcd/etcd.go).
func moved(w Want, s Seen) bool {
	first := func(ips string) string { ip, _, _ := strings.Cut(ips, ","); return ip }
	return w.Server() && w.Datastore == Etcd && s.NodeIP != "" && w.NodeIP != "" && first(s.NodeIP) != first(w.NodeIP)
}

// movedScript gives etcd's one member the address of the configuration that was
// just laid, by the way that k3s has for it (docs.k3s.io/cli/etcd-snapshot, cluster-reset).
func movedScript(w Want) string {
	return movedBody + "moved " + w.Unit() + " " + Binary + " " + w.Data() + "\n"
}
