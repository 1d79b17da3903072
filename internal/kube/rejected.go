package kube

import "fmt"

// WhyRejected tells the two reasons apart for which k3s refuses a node's
// password: another machine has the name, or an earlier one had it. address is
// the joining machine's. leftover says that deleting the node's secret mends it.
func (s State) WhyRejected(node, address string) (reason string, leftover bool) {
	n, there := s.Node(node)
	switch {
	case !there:
		return fmt.Sprintf("the password of an earlier node %s is left over", node), true
	case n.Ready && n.InternalIP != address:
		return fmt.Sprintf("another machine, %s, is node %s and Ready: two machines have one name", n.InternalIP, node), false
	case n.Ready:
		return fmt.Sprintf("node %s is Ready at the same address; its machine was reinstalled a moment ago or runs twice", node), false
	}
	return fmt.Sprintf("node %s is that of an earlier machine (%s), it is not Ready any more", node, n.InternalIP), true
}
