package smoke

import (
	"fmt"

	"github.com/gpuctl/gpuctl/internal/cuda"
)

// unfit says why the test image cannot run on a node, before its pod is made:
// the GPUs are not to blame then. Nil where it can, or where that is not known.
func (o Options) unfit(n Node) *Finding {
	if tooOld(n.Driver, o.MinDriver) {
		return &Finding{CodeImageTooNew, fmt.Sprintf(
			"the cluster may be fine: the test image needs driver %s, the node has %s", o.MinDriver, n.Driver)}
	}
	node := cuda.Node{Driver: n.Driver}
	for _, g := range n.Host {
		node.GPUs = append(node.GPUs, cuda.GPU{Name: g.Name, Compute: g.Compute})
	}
	v := cuda.Decide(cuda.Image{CUDA: o.CUDA}, node)
	if v.Answer != cuda.Fails {
		return nil
	}
	return &Finding{v.Code, "the cluster may be fine: the test image " + o.Image + " does not fit: " + v.Reason}
}

// tooOld says whether a driver version is known and below the floor.
func tooOld(driver, floor string) bool {
	return cuda.Compare(driver, "0") > 0 && cuda.Compare(driver, floor) < 0
}
