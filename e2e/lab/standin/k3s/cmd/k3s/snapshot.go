package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/files"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/server"
	"github.com/sirupsen/logrus"
)

// snapshotCommand is `k3s etcd-snapshot save|ls|delete`, on the server itself.
func snapshotCommand(ctx context.Context, args []string) error {
	what := "save"
	if len(args) > 0 && args[0][0] != '-' {
		what, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("etcd-snapshot", flag.ContinueOnError)
	name := flags.String("name", "on-demand", "")
	data := flags.String("data-dir", layout.DefaultDataDir, "")
	output := flags.String("o", "table", "")
	flags.StringVar(output, "output", "table", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	d := layout.Data(*data)
	if !files.Exists(d.Server("db/etcd/member")) {
		return errors.New("see server log for details: etcd datastore disabled")
	}
	switch what {
	case "save":
		return saveSnapshot(ctx, d, *name)
	case "ls", "list":
		return listSnapshots(d, *output)
	case "delete", "rm":
		for _, n := range flags.Args() {
			if err := os.Remove(d.Server("db/snapshots", filepath.Base(n))); err != nil {
				logrus.Warnf("Snapshot %s not found.", n)
			}
		}
		return nil
	}
	return fmt.Errorf("the lab's stand-in does not imitate k3s etcd-snapshot %s", what)
}

func saveSnapshot(ctx context.Context, d layout.Data, name string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	file := fmt.Sprintf("%s-%s-%d", name, host, time.Now().Unix())
	c, err := server.EtcdClient(d)
	if err != nil {
		return err
	}
	defer c.Close()
	in, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(d.Server("db/snapshots", file), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	logrus.Infof("Snapshot %s saved.", file)
	return nil
}

func listSnapshots(d layout.Data, output string) error {
	entries, err := os.ReadDir(d.Server("db/snapshots"))
	if err != nil {
		return err
	}
	if output == "json" {
		return jsonSnapshots(d, entries)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "Name\tLocation\tSize\tCreated")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\tfile://%s\t%d\t%s\n", e.Name(), d.Server("db/snapshots", e.Name()), info.Size(),
			info.ModTime().UTC().Format(time.RFC3339))
	}
	return w.Flush()
}

// jsonSnapshots lists them as objects of the kind that k3s keeps of them.
func jsonSnapshots(d layout.Data, entries []os.DirEntry) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	items := []any{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		items = append(items, map[string]any{
			"kind": "ETCDSnapshotFile", "apiVersion": "k3s.cattle.io/v1", "metadata": map[string]any{"name": "local-" + e.Name()},
			"spec":   map[string]any{"snapshotName": e.Name(), "nodeName": host, "location": "file://" + d.Server("db/snapshots", e.Name())},
			"status": map[string]any{"size": fmt.Sprint(info.Size()), "creationTime": info.ModTime().UTC().Format(time.RFC3339), "readyToUse": true},
		})
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
}
