package smoke

import (
	"fmt"
	"strconv"
	"strings"
)

// Count is step 1 of the ladder: as many GPUs on the bus as the driver has, as
// many allocatable (times the units of a shared GPU). A count that is Unknown is
// not compared, and then the step is Unverified at best; of a Remote node nobody can
// count the bus.
func Count(n Node) (Status, *Finding) {
	known := n.Host != nil
	perGPU := max(n.Units, 1)
	switch {
	case known && n.PCI != Unknown && !sliced(n.Host) && n.PCI != len(n.Host):
		return Failed, &Finding{CodeCount, fmt.Sprintf("%d on the PCI bus, %d with a driver", n.PCI, len(n.Host))}
	case known && len(n.Host)*perGPU != n.Allocatable:
		return Failed, &Finding{CodeCount, fmt.Sprintf("%d with a driver, %d allocatable, want %d", len(n.Host), n.Allocatable, len(n.Host)*perGPU)}
	case n.Allocatable == 0:
		return Failed, &Finding{CodeNoAllocatable, "the node offers no " + string(n.resource())}
	case !known || n.PCI == Unknown && !n.Remote:
		return Unverified, nil
	}
	return Passed, nil
}

// counted says what was counted.
func counted(n Node) string {
	number := func(i int) string {
		if i == Unknown {
			return "?"
		}
		return strconv.Itoa(i)
	}
	listed := Unknown
	if n.Host != nil {
		listed = len(n.Host)
	}
	return fmt.Sprintf("%s on the PCI bus, %s with a driver, %d allocatable", number(n.PCI), number(listed), n.Allocatable)
}

func sliced(gpus []GPU) bool {
	for _, g := range gpus {
		if strings.HasPrefix(g.UUID, "MIG-") {
			return true
		}
	}
	return false
}
