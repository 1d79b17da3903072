// Package bench measures what talking to many machines costs gpuctl, beside
// what it must cost: a farm of SSH servers in a process of its own, with a
// settable round trip, answers as machines of a finished cluster do, and the
// real engine runs on it. The machines are synthetic: their answers follow the
// probe's own format and were not recorded on hardware.
//
// What is not modelled: loss, thin lines, slow start, and the time that a
// machine needs for the probe itself.
package bench
