package k3s

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Snapshot is one snapshot of etcd on one server.
type Snapshot struct {
	Name string `json:"name"`
	// Server is the machine whose disk has it.
	Server string `json:"server"`
	// Path is where it lies there; empty for one in S3.
	Path string `json:"path,omitempty"`
	// Size is in bytes.
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
}

// ErrNoSnapshot says that a server has no snapshot of that name.
var ErrNoSnapshot = errors.New("no such snapshot")

// restoreBody is read-only; embedding needs a variable.
//
//go:embed script/restore.sh
var restoreBody string

// SnapshotName says what is wrong with the name of a snapshot; k3s makes a file
// of it and adds the node and the time.
func SnapshotName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(name) {
		return fmt.Errorf("%q is no name of a snapshot: letters, digits, '.', '_' and '-'", name)
	}
	return nil
}

func etcdCommand(dataDir string, args ...string) []string {
	if dataDir == "" {
		dataDir = DefaultDataDir
	}
	return append([]string{Binary, "etcd-snapshot", args[0], "--data-dir", dataDir}, args[1:]...)
}

// SaveSnapshot takes a snapshot on a server whose k3s runs and returns its full
// name. name is the first part of it.
func SaveSnapshot(ctx context.Context, on remote.Runner, dataDir, name string) (string, error) {
	if err := SnapshotName(name); err != nil {
		return "", err
	}
	res, err := on.Run(ctx, remote.Cmd{Name: "save a snapshot", Script: "exec \"$@\"\n", Args: etcdCommand(dataDir, "save", "--name", name), Sudo: true, Timeout: 2*time.Minute + 30*time.Second})
	if err != nil {
		return "", fmt.Errorf("saving a snapshot: %w", err)
	}
	// k3s says it on standard error (seen with v1.36.3), older releases may on the other.
	found := regexp.MustCompile(`Snapshot (\S+) saved\.`).FindStringSubmatch(string(res.Stderr) + "\n" + string(res.Stdout))
	if found == nil {
		return "", errors.New("saving a snapshot: k3s does not say that it is saved")
	}
	return found[1], nil
}

// ListSnapshots asks a server whose k3s runs for the snapshots it has, oldest first.
func ListSnapshots(ctx context.Context, on remote.Runner, dataDir, server string) ([]Snapshot, error) {
	res, err := on.Run(ctx, remote.Cmd{Name: "list snapshots", Script: "exec \"$@\"\n", Args: etcdCommand(dataDir, "ls", "-o", "json"), Sudo: true, Timeout: time.Minute})
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	return parseSnapshots(res.Stdout, server)
}

// parseSnapshots reads a List of ETCDSnapshotFile (k3s.cattle.io/v1).
func parseSnapshots(data []byte, server string) ([]Snapshot, error) {
	var list struct {
		Items []struct {
			Spec struct {
				SnapshotName string `json:"snapshotName"`
				Location     string `json:"location"`
			} `json:"spec"`
			Status struct {
				Size         string    `json:"size"`
				CreationTime time.Time `json:"creationTime"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading the list of snapshots: %w", err)
	}
	out := []Snapshot{}
	for _, i := range list.Items {
		one := Snapshot{Name: i.Spec.SnapshotName, Server: server, Created: i.Status.CreationTime}
		one.Path, _ = strings.CutPrefix(i.Spec.Location, "file://")
		if !strings.HasPrefix(one.Path, "/") {
			one.Path = ""
		}
		one.Size, _ = strconv.ParseInt(i.Status.Size, 10, 64) // a quantity of another form is left at 0
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b Snapshot) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// DeleteSnapshot deletes a snapshot of a server. The error is ErrNoSnapshot
// where k3s does not know it.
func DeleteSnapshot(ctx context.Context, on remote.Runner, dataDir, name string) error {
	if err := SnapshotName(name); err != nil {
		return err
	}
	res, err := on.Run(ctx, remote.Cmd{Name: "delete a snapshot", Script: "exec \"$@\"\n", Args: etcdCommand(dataDir, "delete", name), Sudo: true, Timeout: 2 * time.Minute})
	if err != nil {
		return fmt.Errorf("deleting snapshot %s: %w", name, err)
	}
	if strings.Contains(string(res.Stderr)+string(res.Stdout), "not found") {
		return fmt.Errorf("deleting snapshot %s: %w", name, ErrNoSnapshot)
	}
	return nil
}

// FetchSnapshot writes a snapshot of a server to out.
func FetchSnapshot(ctx context.Context, on remote.Runner, snapshot Snapshot, out io.Writer) error {
	if snapshot.Path == "" {
		return fmt.Errorf("fetching snapshot %s: it is on no server's disk", snapshot.Name)
	}
	_, err := on.Run(ctx, remote.Cmd{Name: "fetch a snapshot", Script: "exec cat \"$1\"\n", Args: []string{path.Clean(snapshot.Path)}, Sudo: true, Stdout: out, Timeout: 10 * time.Minute})
	if err != nil {
		return fmt.Errorf("fetching snapshot %s: %w", snapshot.Name, err)
	}
	return nil
}
