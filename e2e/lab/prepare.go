package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// Prepare builds what a lab serves into the cache. It needs gcc and apt-get,
// but no engine and not root.
func Prepare(ctx context.Context, o Options) error {
	l, err := open(o)
	if err != nil {
		return err
	}
	if _, err := l.build(ctx); err != nil {
		return fmt.Errorf("preparing lab %s: %w", l.ID, err)
	}
	return nil
}

// prepareInContainer runs Prepare in a container with Debian's tools, for users
// who have Docker but are not root on Debian. It works as the user, in the
// user's own directories, so that what it builds and downloads is theirs.
func (l *Lab) prepareInContainer(ctx context.Context) error {
	args, err := l.prepareArgs(ctx)
	if err != nil {
		return fmt.Errorf("preparing in a container: %w", err)
	}
	cmd := l.Engine.Command(ctx, args...)
	cmd.Stdout, cmd.Stderr = l.options.Out, l.options.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("preparing in a container: %w", err)
	}
	return nil
}

// prepareScript begins as the container's root and goes on as the user $1:$2.
const prepareScript = `set -e
apt-get update -q >&2
mkdir -p "$HOME"
exec setpriv --reuid "$1" --regid "$2" --clear-groups go run ./lab/cmd/lab prepare $3`

func (l *Lab) prepareArgs(ctx context.Context) ([]string, error) {
	src, err := sourceDir()
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	env := strings.Split(string(out), "\n")
	args := []string{"run", "--rm", "--network", "host", "--workdir", src, "--volume", filepath.Dir(src) + ":" + filepath.Dir(src) + ":ro"}
	for _, dir := range []string{env[0], env[1], l.cache.Dir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "--volume", dir+":"+dir)
	}
	for i, name := range []string{"GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE"} {
		args = append(args, "--env", name+"="+env[i])
	}
	// The version is part of every key of the cache: another would build for nobody.
	args = append(args, "--env", "GPUCTL_LAB_CACHE="+l.cache.Dir(), "--env", "HOME=/tmp/home",
		"--env", "GPUCTL_LAB_STATE=/tmp/state", "--env", "GOTOOLCHAIN=local", "--env", "GOFLAGS=-buildvcs=false")
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		args = append(args, "--env", name) // without a value it is taken over
	}
	if bundle := certificates(); bundle != "" {
		const at = "/etc/ssl/certs/ca-certificates.crt"
		args = append(args, "--volume", bundle+":"+at+":ro", "--env", "SSL_CERT_FILE="+at)
	}
	return append(args, golang(runtime.Version()), "sh", "-c", prepareScript, "prepare",
		strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid()), l.options.flags()), nil
}

// golang is Docker's official image with the Go version of this program.
func golang(version string) string {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "go"), " ")
	return "golang:" + version + "-" + machine.Codename
}

// certificates is the file with the certificate authorities that this host
// trusts; where downloads are inspected, the image's own are not enough.
// The places are those of crypto/x509.
func certificates() string {
	for _, path := range []string{
		os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}
