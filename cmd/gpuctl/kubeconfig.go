package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuctl/gpuctl/internal/kube"
)

// kubeconfigOptions are the flags of kubeconfig.
type kubeconfigOptions struct {
	to                           string
	merge, setCurrent, overwrite bool
	tunnel                       bool
	port                         int
}

func newKubeconfig(a *app) *cobra.Command {
	var o kubeconfigOptions
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig, merge it, or open a tunnel to the API",
		Long: `kubeconfig fetches the cluster's kubeconfig over SSH and prints it, or writes it to
a file of mode 0600. It holds the keys of the cluster.

With --merge it goes into ~/.kube/config (or the files of KUBECONFIG) as a context
of the cluster's name; everything else there stays, the current context too unless
--set-current asks for it.

With --tunnel a port of this computer leads to the API through the server's SSH
connection until Ctrl-C, where the provider lets nothing but port 22 in.`,
		Example: `  gpuctl kubeconfig --to kubeconfig
  gpuctl kubeconfig --merge --set-current
  gpuctl kubeconfig --tunnel`,
		Args: wants(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.withSession(cmd.Context(), need{verb: "kubeconfig", retryFor: briefly},
				func(ctx context.Context, s *session) error {
					if o.tunnel {
						return runTunnel(ctx, s, o)
					}
					return runKubeconfig(ctx, s, o)
				})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "write it to this `file` instead")
	f.BoolVar(&o.merge, "merge", false, "merge it into ~/.kube/config, or the files of KUBECONFIG")
	f.BoolVar(&o.setCurrent, "set-current", false, "with --merge: make it the current context")
	f.BoolVar(&o.overwrite, "overwrite", false, "with --merge: replace a context of that name that leads to another cluster")
	f.BoolVar(&o.tunnel, "tunnel", false, "lead a local port to the API through SSH until Ctrl-C")
	f.IntVar(&o.port, "port", 0, "with --tunnel: the local `port` (default a free one)")
	return cmd
}

func (o kubeconfigOptions) check() error {
	switch {
	case o.merge && o.to != "":
		return usagef("--merge and --to exclude each other")
	case (o.setCurrent || o.overwrite) && !o.merge:
		return usagef("--set-current and --overwrite belong to --merge")
	case o.port != 0 && !o.tunnel:
		return usagef("--port belongs to --tunnel")
	case o.port < 0 || o.port > 65535:
		return usagef("--port %d is no TCP port", o.port)
	}
	return nil
}

func runKubeconfig(ctx context.Context, s *session, o kubeconfigOptions) error {
	data, err := s.engine.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := s.state.WriteKubeconfig(data); err != nil {
		return err
	}
	name := s.inventory.Cluster
	switch {
	case o.merge:
		written, err := mergeKubeconfig(data, o)
		if err != nil {
			return err
		}
		return s.show(map[string]any{"context": name, "written": written, "current": o.setCurrent}, func(w io.Writer) error {
			return mergedText(w, name, written, o)
		})
	case o.to != "":
		if err := kube.WriteFile(o.to, data); err != nil {
			return err
		}
		return s.show(map[string]string{"path": o.to}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "wrote %s; use it with: export KUBECONFIG=%s\n", o.to, o.to)
			return err
		})
	}
	return s.show(map[string]string{"kubeconfig": string(data)}, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// mergeKubeconfig puts a kubeconfig into the user's files and names those it wrote.
func mergeKubeconfig(data []byte, o kubeconfigOptions) ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("finding ~/.kube/config: %w", err)
	}
	written, err := kube.MergeFiles(kube.Files(os.Getenv("KUBECONFIG"), home), data, kube.MergeOptions{Overwrite: o.overwrite, UseContext: o.setCurrent})
	var taken *kube.TakenError
	if errors.As(err, &taken) {
		return nil, usagef("%w; --overwrite replaces it", err)
	}
	if written == nil {
		written = []string{}
	}
	return written, err
}

func mergedText(w io.Writer, name string, written []string, o kubeconfigOptions) error {
	what := "nothing to change: context " + name + " is there already"
	if len(written) > 0 {
		what = "context " + name + " is in " + strings.Join(written, ", ")
	}
	use := "use it with: kubectl --context " + name + " get nodes"
	if o.setCurrent {
		use = "it is the current context"
	}
	_, err := fmt.Fprintf(w, "%s; %s\n", what, use)
	return err
}

// tunnelView is where the API is reached while the tunnel is open.
type tunnelView struct {
	Address string `json:"address"`
	Context string `json:"context"`
	// Path is the kubeconfig, Written the files it was merged into instead.
	Path    string   `json:"path,omitempty"`
	Written []string `json:"written,omitempty"`
}

// runTunnel keeps a local port open until Ctrl-C, which ends it as it should.
func runTunnel(ctx context.Context, s *session, o kubeconfigOptions) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return usagef("opening the local port: %w", err)
	}
	v := tunnelView{Address: l.Addr().String(), Context: s.inventory.Cluster + "-tunnel"}
	return s.engine.Tunnel(ctx, l, v.Context, func(data []byte) error {
		if o.merge {
			o.overwrite = true // the port is another each time
			if v.Written, err = mergeKubeconfig(data, o); err != nil {
				return err
			}
			return s.show(v, func(w io.Writer) error {
				if err := mergedText(w, v.Context, v.Written, o); err != nil {
					return err
				}
				return untilText(w, v)
			})
		}
		v.Path = o.to
		if v.Path == "" {
			v.Path = filepath.Join(s.state.Path(), "kubeconfig-tunnel")
		}
		if err := kube.WriteFile(v.Path, data); err != nil {
			return err
		}
		return s.show(v, func(w io.Writer) error {
			if _, err := fmt.Fprintf(w, "export KUBECONFIG=%s\n", v.Path); err != nil {
				return err
			}
			return untilText(w, v)
		})
	})
}

func untilText(w io.Writer, v tunnelView) error {
	_, err := fmt.Fprintf(w, "the API is at https://%s until Ctrl-C\n", v.Address)
	return err
}
