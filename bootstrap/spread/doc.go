// Package spread brings a large file to many machines while it goes up about
// once: the first machine that needs it gets it over SSH, the others fetch it
// from there inside their private network.
//
// The first machine listens on its private address alone, for as long as this
// client lives, and answers whoever knows the run's secret. What arrives is
// checked by SHA-256. A machine that cannot fetch gets the file over SSH too.
// No key and no agent of the user's reaches any machine.
package spread

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// Dir is where machines keep what they got, until the run is over. What is left
// of a run that was killed is where the next one goes on.
const Dir = "/var/lib/gpuctl/spread"

// File is what is spread.
type File struct {
	// Name is what people call it.
	Name string
	// SHA256 is its checksum, in hex; by it the file is known.
	SHA256 string
	// Size in bytes; 0 means unknown.
	Size int64
	// Open reads it on this computer from an offset on.
	Open func(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// Place is where a machine wants it.
type Place struct {
	// Path is absolute. With Unpack it is a directory that holds the archive's content.
	Path string
	// Mode is the permissions, such as "0755"; empty means 0644.
	Mode string
	// Unpack takes a tar archive apart.
	Unpack bool
}

// Machine is one that takes part.
type Machine struct {
	Name string
	On   remote.Runner
	// Address is where others of its network reach it; one that is not private is not used.
	Address netip.Addr
}

// Private says whether an address is of a network that the world does not
// reach: RFC 1918, RFC 4193, and the range of RFC 6598 that providers and VPNs use.
func Private(a netip.Addr) bool {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)
	return a.IsValid() && !a.IsLoopback() && (a.IsPrivate() || shared.Contains(a.Unmap()))
}

// layLimit bounds laying one file: a slow uplink brings 100 kB a second.
func layLimit(size int64) time.Duration {
	if size == 0 {
		size = 100 << 20
	}
	return 5*time.Minute + time.Duration(size/100_000)*time.Second
}
