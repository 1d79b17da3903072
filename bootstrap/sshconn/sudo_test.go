//go:build unix

package sshconn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sudoStandIn behaves as sudo does on its command line, for one kind of
// machine: free asks nothing; password wants "right horse" on stdin, three
// tries; forbidden takes the password and lets nobody in. Synthetic; its words
// are those that sudo 1.9 prints.
const sudoStandIn = `#!/bin/sh
kind=KIND
log=LOG
n= S=
while :; do
	case $1 in
	-n) n=1; shift ;;
	-S) S=1; shift ;;
	-p) shift 2 ;;
	--) shift; break ;;
	*) break ;;
	esac
done
if [ $kind != free ]; then
	[ -z "$n" ] || { echo "sudo: a password is required" >&2; exit 1; }
	[ -n "$S" ] || { echo "sudo: a terminal is required to read the password" >&2; exit 1; }
	tries=0
	while :; do
		IFS= read -r given || { echo "sudo: no password was provided" >&2; exit 1; }
		echo "$given" >>"$log"
		[ "$given" != "right horse" ] || break
		tries=$((tries + 1))
		[ $tries -lt 3 ] || { echo "sudo: 3 incorrect password attempts" >&2; exit 1; }
		echo "Sorry, try again." >&2
	done
	[ $kind != forbidden ] || { echo "ubuntu is not in the sudoers file." >&2; exit 1; }
fi
echo "sudo: unable to resolve host gpu-1: Name or service not known" >&2
export STAND_IN_ROOT=1
exec "$@"
`

// idStandIn says that the user is 1000 until sudo has run.
const idStandIn = `#!/bin/sh
if [ "$*" = -u ] && [ -z "$STAND_IN_ROOT" ]; then echo 1000; else exec /usr/bin/id "$@"; fi
`

// standIns makes a folder with sudo and id of one kind of machine; on kind
// root there is neither.
func standIns(t *testing.T, kind string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if kind == "root" {
		return dir
	}
	write("id", idStandIn)
	write("sudo", strings.NewReplacer("KIND", kind, "LOG", passwordLog(dir)).Replace(sudoStandIn))
	return dir
}

// passwordLog is where the stand-in of sudo notes each password it was given.
func passwordLog(dir string) string { return filepath.Join(dir, "log") }
