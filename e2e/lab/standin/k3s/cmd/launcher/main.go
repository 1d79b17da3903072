// Command launcher is the file k3s that is installed: it unpacks the archive
// appended to it and runs the program of the archive that the command asks
// for. Source of the rules: k3s cmd/k3s/main.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/config"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/sirupsen/logrus"
)

// release is the version that the file says it has; the build sets it.
var release = "v0.0.0+k3s1"

// commands are the subcommands of k3s.
var commands = [...]string{"server", "agent", "kubectl", "crictl", "ctr", "check-config", "token", "etcd-snapshot",
	"secrets-encrypt", "certificate", "completion"}

func main() {
	logrus.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, DisableColors: true})
	name, args := invoked(os.Args)
	switch {
	case name == "--version" || name == "-v":
		printVersion()
	case name == "" || name == "help" || name == "--help" || name == "-h":
		fmt.Printf("NAME:\n   k3s - Kubernetes, but small and simple (lab stand-in)\n\nCOMMANDS:\n   %s\n", strings.Join(commands[:], "\n   "))
	case slices.Contains(commands[:], name):
		if err := launch(name, args); err != nil {
			logrus.Fatalf("Error: %v", err)
		}
	default:
		fmt.Printf("No help topic for '%s'\n", name)
		os.Exit(3)
	}
}

// invoked is the command and its arguments: called by the name of one of the
// tools, the file is that tool.
func invoked(argv []string) (name string, args []string) {
	switch base := filepath.Base(argv[0]); base {
	case "kubectl", "crictl", "ctr":
		return base, argv[1:]
	}
	if len(argv) < 2 {
		return "", nil
	}
	return argv[1], argv[2:]
}

func printVersion() {
	fmt.Printf("k3s version %s (standin0)\n", release)
	fmt.Printf("go version %s\n", runtime.Version())
	fmt.Println("this is a lab stand-in made of upstream Kubernetes, etcd and containerd; it is not k3s")
}

// launch replaces the process by the unpacked program.
func launch(name string, args []string) error {
	data := dataDir(name, args)
	bin, err := unpack(data)
	if err != nil {
		return err
	}
	env := environment(data, bin)
	program, argv := name, append([]string{name}, args...)
	switch name {
	case "kubectl":
	case "crictl":
		env = withCrictl(env, data)
	case "ctr":
		env = append(env, "CONTAINERD_ADDRESS="+layout.ContainerdSock, "CONTAINERD_NAMESPACE=k8s.io")
	default:
		program, argv = "k3s-"+name, append([]string{os.Args[0], name}, args...)
	}
	return syscall.Exec(filepath.Join(bin, program), argv, env)
}

// dataDir is the data directory: environment, command line, then the file.
func dataDir(name string, args []string) string {
	if d := os.Getenv("K3S_DATA_DIR"); d != "" {
		return d
	}
	if name != "server" && name != "agent" && name != "etcd-snapshot" {
		args = nil
	}
	fromFile, err := config.FileArgs(layout.ConfigFile)
	if err != nil {
		logrus.Warn(err)
	}
	all := append(fromFile, args...)
	dir := layout.DefaultDataDir
	for i, a := range all {
		for _, flag := range []string{"--data-dir", "-d"} {
			if v, ok := strings.CutPrefix(a, flag+"="); ok {
				dir = v
			} else if a == flag && i+1 < len(all) {
				dir = all[i+1]
			}
		}
	}
	return dir
}

// environment puts the plugins and programs of the archive into PATH.
func environment(data, bin string) []string {
	path := strings.Join([]string{layout.Data(data).CNI(), bin, os.Getenv("PATH"), filepath.Join(bin, "aux")}, ":")
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	return append(env, "PATH="+path)
}

func withCrictl(env []string, data string) []string {
	if os.Getenv("CRI_CONFIG_FILE") != "" {
		return env
	}
	return append(env, "CRI_CONFIG_FILE="+layout.Data(data).Agent("etc/crictl.yaml"))
}
