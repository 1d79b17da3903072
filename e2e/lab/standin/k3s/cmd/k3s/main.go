// Command k3s, inside the unpacked archive, is every program of the stand-in:
// the name it is called by says which.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/component"
	"github.com/gpuctl/gpuctl/e2e/lab/standin/k3s/layout"
	"github.com/sirupsen/logrus"
)

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kubectl" {
		defaultKubeconfig()
	}
	if code, ok := component.Run(name); ok {
		os.Exit(code)
	}
	logrus.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, DisableColors: true})
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := command(ctx, os.Args[1:]); err != nil {
		exit(err)
	}
}

// exit ends the process as k3s does: an unknown flag shows the usage, any
// error is fatal.
func exit(err error) {
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Printf("Incorrect Usage: %v\n\n%s\n", usage.cause, usage.text)
		err = usage.cause
	}
	logrus.Fatalf("Error: %v", err)
}

// defaultKubeconfig makes kubectl use the server's kubeconfig if the user
// names none.
func defaultKubeconfig() {
	if os.Getenv("KUBECONFIG") != "" {
		return
	}
	f, err := os.Open(layout.Kubeconfig)
	switch {
	case err == nil:
		f.Close()
		os.Setenv("KUBECONFIG", layout.Kubeconfig)
	case errors.Is(err, os.ErrPermission):
		logrus.Warnf("Unable to read %s, please start server with --write-kubeconfig-mode or --write-kubeconfig-group "+
			"to modify kube config permissions", layout.Kubeconfig)
		os.Setenv("KUBECONFIG", layout.Kubeconfig)
	}
}
