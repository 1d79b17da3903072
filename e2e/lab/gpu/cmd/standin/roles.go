package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/gpu/smi"
)

// exportMetrics serves the metrics of idle GPUs in dcgm-exporter's form.
func exportMetrics(addr string) error {
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "KO: no DCGM, a stand-in") })
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		s, err := smi.Library("/")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		host, _ := os.Hostname()
		for _, metric := range []string{"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"} {
			fmt.Fprintf(w, "# TYPE %s gauge\n", metric)
			for i, minor := range smi.Visible("/", s) {
				g := s.GPUs[minor]
				fmt.Fprintf(w, "%s{gpu=\"%d\",UUID=%q,modelName=%q,Hostname=%q} 0\n", metric, i, g.UUID, g.Model, host)
			}
		}
	})
	server := http.Server{Addr: addr, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// kubectl knows what the chart's hooks ask for: apply -f FILE with custom
// resource definitions, and delete of one object.
func kubectl(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "apply" && args[1] == "-f":
		return apply(args[2])
	case len(args) >= 3 && args[0] == "delete":
		return remove(args[1], args[2])
	}
	return fmt.Errorf("kubectl: this stand-in does not know %q", args)
}

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	policies    = "/apis/nvidia.com/v1/clusterpolicies/"
)

func apply(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, doc := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		m := regexp.MustCompile(`(?m)^  name: (\S+)$`).FindSubmatch(doc)
		if len(bytes.TrimSpace(doc)) == 0 || m == nil {
			continue
		}
		path := definitions + string(m[1]) + "?fieldManager=kubectl&force=true"
		if _, _, err := call(http.MethodPatch, path, "application/apply-patch+yaml", doc); err != nil {
			return err
		}
		fmt.Printf("customresourcedefinition.apiextensions.k8s.io/%s configured\n", m[1])
	}
	return nil
}

func remove(kind, name string) error {
	base := definitions
	if strings.HasPrefix(kind, "clusterpolic") {
		base = policies
	}
	_, status, err := call(http.MethodDelete, base+name, "application/json", nil)
	if status == http.StatusNotFound {
		return nil
	}
	return err
}
