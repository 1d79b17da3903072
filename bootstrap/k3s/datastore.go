package k3s

// datastore is where a server has its data: Etcd, SQLite, or "" where it has
// none yet or its files were not looked at. k3s takes etcd wherever its data
// are (k3s pkg/cluster/managed.go).
func (s Seen) datastore(w Want) string {
	dir := func(path string) bool { f, there := s.Files[w.Data()+path]; return there && f.Kind == "dir" }
	_, installed := s.Units["k3s"]
	switch {
	case !w.Server() || !installed:
		return ""
	case dir("/server/db/etcd"):
		return Etcd
	case dir("/server/db"):
		return SQLite
	}
	return ""
}

// migrates says whether the next start moves a server's data from sqlite to
// etcd, as cluster-init does: https://docs.k3s.io/datastore/ha-embedded.
func migrates(w Want, s Seen) bool {
	return w.First() && w.Datastore == Etcd && s.datastore(w) == SQLite
}

// copyScript keeps the sqlite database and the token that opens it, with k3s
// stopped: k3s itself takes no snapshot of sqlite.
func copyScript(w Want) string {
	server := w.Data() + "/server"
	return `if [ ! -d ` + server + `/db/etcd ]; then
  systemctl stop ` + w.Unit() + `.service
  kept=` + server + `/db-sqlite-$(date +%s)
  (umask 077 && mkdir "$kept" && cp -a ` + server + `/db/. "$kept/" && cp -a ` + server + `/token "$kept/token")
fi
`
}
