// Command lab-standin is the process in the images that only have to be
// there: it plays pause, DCGM exporter, MIG manager, and the kubectl of the
// operator's upgrade hook, by the name it is called with.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	var err error
	switch filepath.Base(os.Args[0]) {
	case "dcgm-exporter":
		err = exportMetrics(":9400")
	case "nvidia-mig-manager":
		err = manageMIG(os.Getenv("NODE_NAME"))
	case "kubectl":
		err = kubectl(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if filepath.Base(os.Args[0]) == "pause" {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
		<-stop
	}
}
