// Command mirror serves a lab's downloads; see package mirror.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpuctl/gpuctl/e2e/lab/mirror"
)

func main() {
	var c mirror.Config
	flag.StringVar(&c.Dir, "dir", "", "directory with k3s/, apt/ and charts/")
	flag.StringVar(&c.Blobs, "blobs", "", "directory of the registry's blobs")
	flag.StringVar(&c.Listen, "listen", "127.0.0.1:0", "address to listen at")
	flag.StringVar(&c.Build, "build", "", "name of this program's build")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := mirror.Serve(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "mirror:", err)
		os.Exit(1)
	}
}
