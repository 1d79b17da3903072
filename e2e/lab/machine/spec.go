package machine

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Reach says how far the outside world, which the host stands for, gets into a
// machine. Machines of one network always reach each other.
type Reach string

// The kinds of reach.
const (
	ReachAll  Reach = "all"  // every port
	ReachSSH  Reach = "ssh"  // the SSH port alone, as many providers do it
	ReachNone Reach = "none" // nothing: only through a jump host
)

// Spec describes a machine. Only Name is needed.
type Spec struct {
	// Name is the machine's host name; it is unique in a lab.
	Name string
	// Networks are the names of lab networks; the first holds the machine's
	// address and its default route. Empty means the lab's main network.
	Networks []string
	// Reach is ReachAll if empty.
	Reach Reach
	// Shell is the login shell of all users, /bin/bash if empty. The image
	// also has /bin/sh (dash), /usr/bin/fish and /bin/tcsh.
	Shell string
	// SSHPort is 22 if zero.
	SSHPort int
	// SSHD holds more lines for sshd_config, e.g. "AllowTcpForwarding no".
	SSHD []string
	// Volumes are paths that lie on disks of their own.
	Volumes []string
	// Unprivileged makes a mere container, as some providers rent them out:
	// no CAP_SYS_ADMIN, no systemd, but sshd.
	Unprivileged bool
	// GPU is the machine's GPU scenario as JSON, nil for none.
	GPU []byte
	// Files are laid before the first boot, by absolute path.
	Files map[string]File
	// Memory limits the machine's memory, in bytes; zero means no limit.
	Memory int64
}

// File is a file of a machine, owned by root.
type File struct {
	Content []byte
	Mode    fs.FileMode // 0644 if zero
	// Link makes it a symbolic link to this target instead.
	Link string
}

// Network is a network that machines are attached to.
type Network struct {
	// Name is the network's name for Docker.
	Name string
	// Gateway is the host's address in it.
	Gateway string
}

// withDefaults fills in what an empty field means.
func (s Spec) withDefaults() Spec {
	if s.Reach == "" {
		s.Reach = ReachAll
	}
	if s.Shell == "" {
		s.Shell = "/bin/bash"
	}
	if s.SSHPort == 0 {
		s.SSHPort = 22
	}
	return s
}

// environment renders /etc/lab/machine.env, which the machine's first process
// reads. dns and the gateways are the host's addresses as the machine sees it.
func (s Spec) environment(dns string, gateways []string) []byte {
	kind := "vm"
	if s.Unprivileged {
		kind = "container"
	}
	return fmt.Appendf(nil, "LAB_KIND=%s\nLAB_SHELL='%s'\nLAB_DNS=%s\nLAB_SSH_PORT=%d\nLAB_REACH=%s\nLAB_OUTSIDE='%s'\n",
		kind, s.Shell, dns, s.SSHPort, s.Reach, strings.Join(gateways, " "))
}

// files is everything that is laid in the machine before its first boot.
func (s Spec) files(authorizedKey []byte, env []byte) map[string]File {
	all := map[string]File{
		"/etc/lab/machine.env":     {Content: env},
		"/etc/lab/authorized_keys": {Content: authorizedKey},
		// sshd takes the first value it reads, so this name sorts before the image's own.
		"/etc/ssh/sshd_config.d/05-lab.conf": {
			Content: fmt.Appendf(nil, "Port %d\n%s\n", s.SSHPort, strings.Join(s.SSHD, "\n")),
		},
	}
	if s.GPU != nil {
		all["/etc/lab/gpu.json"] = File{Content: s.GPU}
	}
	maps.Copy(all, s.Files)
	return all
}

// pack makes the tar stream that `docker cp - NAME:/` unpacks. Directories get
// no entries, so that those of the image keep their modes.
func pack(files map[string]File) (*bytes.Buffer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := files[path]
		if f.Mode == 0 {
			f.Mode = 0o644
		}
		header := &tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: int64(f.Mode.Perm()), Size: int64(len(f.Content))}
		if f.Link != "" {
			header.Typeflag, header.Linkname, header.Size, f.Content = tar.TypeSymlink, f.Link, 0, nil
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &buf, nil
}
