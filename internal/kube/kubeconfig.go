package kube

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Rename rewrites a k3s kubeconfig, whose cluster, user and context are all
// called "default": the three get the cluster's name, and the server its
// address ("https://203.0.113.10:6443"; empty leaves it).
func Rename(kubeconfig []byte, name, server string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	ctx := config.Contexts[config.CurrentContext]
	if ctx == nil || config.Clusters[ctx.Cluster] == nil || config.AuthInfos[ctx.AuthInfo] == nil {
		return nil, errors.New("reading kubeconfig: its current context is not complete")
	}
	cluster, user := config.Clusters[ctx.Cluster], config.AuthInfos[ctx.AuthInfo]
	if server != "" {
		cluster.Server = server
	}
	ctx = ctx.DeepCopy()
	ctx.Cluster, ctx.AuthInfo = name, name
	config.Clusters = map[string]*api.Cluster{name: cluster}
	config.AuthInfos = map[string]*api.AuthInfo{name: user}
	config.Contexts = map[string]*api.Context{name: ctx}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// LoadFiles reads kubeconfig files as kubectl would (the value of KUBECONFIG,
// or the default file), resolves paths that are relative to a file and returns
// one self-contained kubeconfig for Connect. context chooses one of its
// contexts; empty means the current one.
func LoadFiles(paths []string, context string) ([]byte, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: paths}
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	if context != "" {
		config.CurrentContext = context
	}
	if err := api.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	if err := api.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return clientcmd.Write(*config)
}

// Secrets are what a kubeconfig holds that nobody may read in a record: tokens,
// passwords and private keys.
func Secrets(kubeconfig []byte) []string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil
	}
	var out []string
	for _, user := range config.AuthInfos {
		for _, s := range []string{user.Token, user.Password, string(user.ClientKeyData)} {
			if s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// Files splits the value of KUBECONFIG; empty parts are skipped, and without
// any it is the default file below home.
func Files(kubeconfigEnv, home string) []string {
	var out []string
	for _, path := range filepath.SplitList(kubeconfigEnv) {
		if path != "" {
			out = append(out, path)
		}
	}
	if len(out) == 0 {
		out = []string{filepath.Join(home, ".kube", "config")}
	}
	return out
}

// TakenError says that a kubeconfig has an entry of this name that belongs to another server.
type TakenError struct{ Path, Name, Server string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("merging into %s: %q is there already and points to %s", e.Path, e.Name, e.Server)
}

// MergeOptions are decisions that are only taken when asked for.
type MergeOptions struct {
	// Overwrite replaces entries of the name that belong to another server.
	Overwrite bool
	// UseContext makes the cluster the current context.
	UseContext bool
}

// MergeFiles puts the three entries of a renamed kubeconfig (see Rename) into
// the user's files by the rules of kubectl: an entry that is there is replaced
// in its file, as a whole; new ones go into the first file that exists, and
// where none does the last one is made. Everything else stays as it is,
// comments and relative paths included, and files without a change are not
// written. It returns the files written.
func MergeFiles(paths []string, kubeconfig []byte, o MergeOptions) ([]string, error) {
	if len(paths) == 0 {
		return nil, errors.New("merging kubeconfig: no file to merge into")
	}
	docs := make([]*document, len(paths))
	target := len(paths) - 1
	for i := len(paths) - 1; i >= 0; i-- {
		doc, err := readDocument(paths[i])
		if err != nil {
			return nil, err
		}
		docs[i] = doc
		if doc.exists {
			target = i
		}
	}
	entries, name, err := newEntries(kubeconfig)
	if err != nil {
		return nil, err
	}
	if !o.Overwrite {
		if err := foreign(docs, name, serverOf(entries["clusters"])); err != nil {
			return nil, err
		}
	}
	for _, list := range []string{"clusters", "users", "contexts"} {
		at := target
		for i := len(docs) - 1; i >= 0; i-- {
			if docs[i].entry(list, name) != nil {
				at = i
			}
		}
		docs[at].put(list, name, entries[list])
	}
	if o.UseContext {
		at := target
		for i := len(docs) - 1; i >= 0; i-- {
			if n := docs[i].field("current-context"); n != nil && n.Value != "" {
				at = i
			}
		}
		docs[at].set("current-context", name)
	}
	var written []string
	for _, doc := range docs {
		changed, err := doc.save()
		if err != nil {
			return written, err
		}
		if changed {
			written = append(written, doc.path)
		}
	}
	return written, nil
}

// newEntries returns the entries to merge and their common name.
func newEntries(kubeconfig []byte) (map[string]*yaml.Node, string, error) {
	for _, mask := range []string{"DATA+OMITTED", "REDACTED"} {
		if bytes.Contains(kubeconfig, []byte(mask)) {
			return nil, "", errors.New("merging kubeconfig: its secrets are masked")
		}
	}
	doc, err := parseDocument(kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("merging kubeconfig: %w", err)
	}
	name := ""
	if n := doc.field("current-context"); n != nil {
		name = n.Value
	}
	entries := map[string]*yaml.Node{}
	for _, list := range []string{"clusters", "users", "contexts"} {
		if entries[list] = doc.entry(list, name); name == "" || entries[list] == nil {
			return nil, "", fmt.Errorf("merging kubeconfig: it has no %s entry %q", list, name)
		}
	}
	return entries, name, nil
}

// foreign refuses entries of the name that are not this cluster's: with another
// server, or a user or context without its cluster.
func foreign(docs []*document, name, server string) error {
	for _, doc := range docs {
		cluster := doc.entry("clusters", name)
		if cluster != nil && serverOf(cluster) != server {
			return &TakenError{doc.path, name, serverOf(cluster)}
		}
		if cluster != nil {
			return nil // the first file counts, as in kubectl
		}
	}
	for _, doc := range docs {
		if doc.entry("contexts", name) != nil || doc.entry("users", name) != nil {
			return &TakenError{doc.path, name, "another cluster"}
		}
	}
	return nil
}

func serverOf(cluster *yaml.Node) string {
	if n := get(get(cluster, "cluster"), "server"); n != nil {
		return n.Value
	}
	return ""
}

// WriteFile writes a kubeconfig of its own file, mode 0600, in one step.
func WriteFile(path string, kubeconfig []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return writeAtomic(path, kubeconfig)
}

// writeAtomic replaces a file by a complete one; a symbolic link stays one.
func writeAtomic(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
