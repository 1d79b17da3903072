package sshconn

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
)

// What goes over the wire for one command:
//
//	command line   loginLine, always the same
//	stdin          for sudo: a program that becomes root and starts the loop again
//	               the loader line, the program run.sh, the script, then Cmd.Stdin
//
// Programs are read with the read builtin, byte by byte, so that nothing of
// what follows is consumed; nothing that varies stands in an argument list.

// loop reads lines until one begins with "gpuctl:" and evaluates its rest.
// Other lines are skipped: a password that sudo turned out not to need.
const loop = `while IFS= read -r l; do case $l in gpuctl:*) eval "${l#gpuctl:}";; esac; done`

// loginLine is what every login shell gets: bash, dash, fish, tcsh and zsh
// read it alike, for it has no line break, no "!" and no backslash (fish
// halves doubled ones, tcsh expands "!" and cannot take a line break).
const loginLine = "/bin/sh -c '" + loop + "'"

// start marks a line that the loop evaluates.
const start = "gpuctl:"

//go:embed sh/run.sh
var runProgram string

//go:embed sh/decide.sh
var decideProgram string

//go:embed sh/kill.sh
var killProgram string

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// mark is what stands around output. It begins with a control character, so
// that a stream is hardly ever held back while its end is looked for.
func newMark() string {
	var b [12]byte
	rand.Read(b[:])
	return "\x1e" + hex.EncodeToString(b[:])
}

// loader is the line that defines block, reads one program and runs it.
// block reads lines into _b until one that equals its argument.
func loader(mark string) string {
	return start + `_n=$(printf '\n.'); _n=${_n%.}; _m='` + mark + `'; _e="${_m}."; ` +
		`block() { _b=; while IFS= read -r _l; do if [ "$_l" = "$1" ]; then return 0; fi; _b="$_b$_l$_n"; done; exit 125; }; ` +
		`block "$_e"; eval "$_b"` + "\n"
}

// block appends a program or script and its end line.
func block(b *bytes.Buffer, mark, text string) {
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(mark + ".\n")
}

// encode renders all of standard input that stands before Cmd.Stdin.
func encode(c remote.Cmd, mark string, mode sudoMode, password string) ([]byte, error) {
	if err := checkCmd(c); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if c.Sudo {
		prelude(&b, mark, mode, password)
	}
	b.WriteString(loader(mark))
	block(&b, mark, setup(c)+runProgram)
	block(&b, mark, c.Script)
	return b.Bytes(), nil
}

// prelude becomes root in the way that is known, or finds the way.
func prelude(b *bytes.Buffer, mark string, mode sudoMode, password string) {
	quoted := remote.Quote(loop)
	switch mode {
	case sudoRoot:
	case sudoFree:
		b.WriteString(start + "exec sudo -n -- /bin/sh -c " + quoted + "\n")
	case sudoPassword:
		b.WriteString(start + "exec sudo -S -p '' -- /bin/sh -c " + quoted + "\n" + password + "\n")
	default:
		b.WriteString(loader(mark))
		block(b, mark, "_loop="+quoted+"\n"+decideProgram)
		if password == "" {
			b.WriteString("n\n")
			return
		}
		// Once to be tried by itself, once for the sudo that runs the script.
		b.WriteString("p" + password + "\n" + password + "\n")
	}
}

// setup is the function that gives the script its variables and arguments.
func setup(c remote.Cmd) string {
	var b strings.Builder
	b.WriteString("_setup() {\n:\n")
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		b.WriteString("export " + k + "=" + remote.Quote(c.Env[k]) + "\n")
	}
	b.WriteString("}\n")
	b.WriteString("set -- " + remote.QuoteAll(c.Args...) + "\n")
	return b.String()
}

func checkCmd(c remote.Cmd) error {
	if strings.ContainsRune(c.Script, 0) {
		return errors.New("script contains a NUL byte")
	}
	for _, a := range c.Args {
		if strings.ContainsRune(a, 0) {
			return errors.New("argument contains a NUL byte")
		}
	}
	for k, v := range c.Env {
		if !envName.MatchString(k) {
			return fmt.Errorf("variable name %q is not one of the shell", k)
		}
		if strings.ContainsRune(v, 0) {
			return fmt.Errorf("variable %s contains a NUL byte", k)
		}
	}
	return nil
}

// checkPassword refuses what could not be sent as one line of its own.
func checkPassword(p string) error {
	if strings.ContainsAny(p, "\n\r\x00") || strings.HasPrefix(p, start) {
		return errors.New("the sudo password contains a line break or begins with \"" + start + "\"")
	}
	return nil
}
