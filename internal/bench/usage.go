//go:build unix

package bench

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage reads what the process and its children have used.
func usage() reading {
	r := reading{at: time.Now(), rest: status("VmRSS:"), peak: status("VmHWM:")}
	var self, children syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &self) == nil {
		r.cpu = spent(self)
	}
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) == nil {
		r.child = spent(children)
	}
	return r
}

func spent(u syscall.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// status reads a size in KiB from /proc/self/status; 0 where there is none.
func status(key string) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == key {
			n, _ := strconv.ParseInt(words[1], 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}
