//go:build lab

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/scene"
)

// openLimit bounds what comes before the first test: everything is built when
// the cache is empty.
const openLimit = 30 * time.Minute

// stage is set once, before any test runs.
var stage *scene.Stage

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if code, is := rents(); is {
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	var err error
	if stage, err = scene.Open(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := stage.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
