package main

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/gpuctl/gpuctl/internal/ui"
)

// app is what every command shares: the streams, the global flags and the way
// to an engine. Tests put buffers and a fake here.
type app struct {
	in       io.Reader
	out, err io.Writer
	terminal terminals
	// size is the size of the terminal behind err.
	size func() ui.Size
	// readPassword asks on the terminal without echo.
	readPassword func(prompt string) (string, error)
	newEngine    func(engineDeps) (Engine, error)

	flags globalFlags
	// printed says that a result is on standard output already.
	printed bool
}

// terminals says which streams are terminals.
type terminals struct{ in, out, err bool }

// globalFlags are those of every command.
type globalFlags struct {
	file    string
	nodes   []string
	output  string
	timeout time.Duration
	yes     bool
	verbose bool
	noColor bool
	// force lets versions meet that no tested set has together; plan and apply have it.
	force bool
	// bundle is an offline bundle to take everything from; plan and what applies have it.
	bundle string
	// acceptNewHostKeys agrees to sending secrets to machines seen for the first time.
	acceptNewHostKeys bool
}

func (a *app) json() bool { return a.flags.output == "json" }

// style is how text on err may look; NO_COLOR is https://no-color.org.
func (a *app) style(isTerminal bool) ui.Style {
	return ui.Style{Color: isTerminal && !a.flags.noColor && os.Getenv("NO_COLOR") == ""}
}

func terminalSize() ui.Size {
	width, height, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || width < 1 || height < 1 {
		return ui.Size{Width: 80, Height: 24}
	}
	return ui.Size{Width: width, Height: height}
}

func readPassword(prompt string) (string, error) {
	if _, err := io.WriteString(os.Stderr, prompt); err != nil {
		return "", err
	}
	password, err := term.ReadPassword(int(os.Stdin.Fd()))
	if _, nl := io.WriteString(os.Stderr, "\n"); err == nil {
		err = nl
	}
	return string(password), err
}
