// Package smoke is the acceptance ladder: it proves that the GPUs of nodes work
// before the nodes take work.
//
//  1. PCI devices = GPUs of the driver = allocatable GPUs (before sharing).
//  2. nvidia-smi in a pod.
//  3. One pod per node takes all its free GPUs and runs vectorAdd once on each;
//     the UUIDs it reports are the host's, each once. A GPU that other pods hold is
//     "in use, not tested", never passed.
//
// Shared GPUs are proven otherwise: as many pods as there are free shares, one
// share each, all of them there at once and each computing on the GPU it was
// given; and a pod for which no share is left waits.
//
// Steps 2 and 3 share one pod. What the pod prints is marked with a random word
// of the run, so that old or invented output is found out, and judged against
// what the machine itself says. Parsing and judging are pure.
package smoke
