package mirror

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// arMember returns a member of an ar archive. Format: the magic line, then per
// member a header of 60 bytes (name 16, date 12, uid 6, gid 6, mode 8, size 10,
// end mark 2) and the content, padded to an even length.
func arMember(archive []byte, name string) ([]byte, error) {
	const magic, header = "!<arch>\n", 60
	rest, ok := bytes.CutPrefix(archive, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("not an ar archive")
	}
	for len(rest) >= header {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size < 0 || size > len(rest)-header {
			return nil, fmt.Errorf("ar member of size %q", rest[48:58])
		}
		found := strings.TrimRight(strings.TrimSpace(string(rest[:16])), "/")
		if found == name {
			return rest[header : header+size], nil
		}
		rest = rest[min(len(rest), header+size+size%2):]
	}
	return nil, fmt.Errorf("no member %s in the ar archive", name)
}
