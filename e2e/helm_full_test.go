//go:build lab && full

package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/scene"
)

// Helm keeps a release as Secrets sh.helm.release.v1.<name>.v<revision>, whose
// field release is JSON, packed by gzip and base64 (helm.sh/helm/v3
// pkg/storage/driver). Tests rewrite them to what other clients and cut off runs
// leave behind.

// record is one such Secret.
type record struct {
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Data struct {
		Release []byte `json:"release"`
	} `json:"data"`
}

func records(s *scene.Scene) []record {
	var list struct{ Items []record }
	s.Kubectl(&list, "get secrets -A -l owner=helm -o json")
	return list.Items
}

// releases are "name revision status", sorted.
func releases(s *scene.Scene) []string {
	var out []string
	for _, r := range records(s) {
		l := r.Metadata.Labels
		out = append(out, l["name"]+" "+l["version"]+" "+l["status"])
	}
	slices.Sort(out)
	return out
}

// rewrite changes the records of all releases: to is given a release's JSON and
// its labels, and says whether the old record goes.
func rewrite(t *testing.T, s *scene.Scene, to func(release map[string]any, labels map[string]string) (dropOld bool)) {
	t.Helper()
	for _, r := range records(s) {
		release, err := unpack(r.Data.Release)
		if err != nil {
			t.Fatal(err)
		}
		old := r.Metadata.Name
		drop := to(release, r.Metadata.Labels)
		packed, err := pack(release)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("sh.helm.release.v1.%s.v%s", r.Metadata.Labels["name"], r.Metadata.Labels["version"])
		secret, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
			"metadata": map[string]any{"name": name, "namespace": r.Metadata.Namespace, "labels": r.Metadata.Labels},
			"data":     map[string]any{"release": packed},
		})
		if err != nil {
			t.Fatal(err)
		}
		if drop {
			s.Server("k3s kubectl -n " + r.Metadata.Namespace + " delete secret " + old)
		}
		s.Server("k3s kubectl create -f - <<'EOF'\n" + string(secret) + "\nEOF\n")
	}
}

func unpack(data []byte) (map[string]any, error) {
	zipped, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return nil, err
	}
	var release map[string]any
	return release, json.Unmarshal(text, &release)
}

func pack(release map[string]any) ([]byte, error) {
	text, err := json.Marshal(release)
	if err != nil {
		return nil, err
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err = w.Write(text); err == nil {
		err = w.Close()
	}
	return []byte(base64.StdEncoding.EncodeToString(zipped.Bytes())), err
}

// asGenerated gives the releases a generated name, as helm install --generate-name
// does, and takes away that gpuctl made them.
func asGenerated(t *testing.T, s *scene.Scene, name string) {
	t.Helper()
	rewrite(t, s, func(release map[string]any, labels map[string]string) bool {
		release["name"], labels["name"] = name, name
		delete(labels, "gpuctl.dev/owner")
		return true
	})
}

// asPending leaves behind what an upgrade that was cut off an hour ago does.
func asPending(t *testing.T, s *scene.Scene) {
	t.Helper()
	rewrite(t, s, func(release map[string]any, labels map[string]string) bool {
		release["version"], labels["version"], labels["status"] = 2, "2", "pending-upgrade"
		info, _ := release["info"].(map[string]any)
		info["status"], info["last_deployed"] = "pending-upgrade", time.Now().Add(-time.Hour).Format(time.RFC3339)
		return false
	})
}
