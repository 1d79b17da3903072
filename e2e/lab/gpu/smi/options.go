package smi

import (
	"fmt"
	"strings"
)

type options struct {
	list, full, topo, set bool
	queryGPU, queryApps   string
	noHeader, noUnits     bool
	id, mig               string
}

// parse reads the options that are simulated; another one is refused as the
// command refuses a combination it does not know.
func parse(args []string) (options, error) {
	var o options
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		take := func() string {
			if joined {
				return value
			}
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch name {
		case "-L", "--list-gpus":
			o.list = true
		case "-q", "--query":
			o.full = true
		case "-d", "--display":
			take()
		case "-i", "--id":
			o.id = take()
		case "--query-gpu":
			o.queryGPU = take()
		case "--query-compute-apps":
			o.queryApps = take()
		case "--format":
			for _, f := range strings.Split(take(), ",") {
				o.noHeader = o.noHeader || f == "noheader"
				o.noUnits = o.noUnits || f == "nounits"
			}
		case "topo":
			o.topo = true
		case "-m", "--matrix":
		case "-mig", "--multi-instance-gpu":
			o.set, o.mig = true, take()
		case "-pm", "--persistence-mode", "-c", "--compute-mode":
			o.set = true
			take()
		default:
			return o, fmt.Errorf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n") //nolint:staticcheck,revive // the command's own words
		}
	}
	return o, nil
}
