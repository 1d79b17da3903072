// Package bootstrap turns machines that can be reached by SSH into a Kubernetes
// cluster whose GPUs are proven to work.
//
// It observes every machine and the cluster, plans (a pure function, see
// contents.go: the table of contents of a cluster), applies the plan as a graph
// and verifies by observing again. The rooms below it know one thing each:
// remote and sshconn how to run commands, host what a machine is, nvidia and k3s
// how to change it, plan how to walk a graph of changes.
package bootstrap
