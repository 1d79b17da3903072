package recipe_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gpuctl/gpuctl/e2e/lab/recipe"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestKeyFollowsWhatDecidesTheArtefact(t *testing.T) {
	cache, err := recipe.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(t.TempDir(), "src")
	write(t, filepath.Join(src, "a"), "one")
	base := recipe.Recipe{Name: "x", Inputs: []string{src}, Salt: "v1"}
	key := cache.Key(base)
	if !strings.HasPrefix(key, "x-") {
		t.Fatalf("key %q does not start with the recipe's name", key)
	}
	moved := filepath.Join(t.TempDir(), "src")
	write(t, filepath.Join(moved, "a"), "one")
	if got := cache.Key(recipe.Recipe{Name: "x", Inputs: []string{moved}, Salt: "v1"}); got != key {
		t.Errorf("the same content elsewhere has key %s, want %s", got, key)
	}
	changes := map[string]func() recipe.Recipe{
		"name":    func() recipe.Recipe { r := base; r.Name = "y"; return r },
		"salt":    func() recipe.Recipe { r := base; r.Salt = "v2"; return r },
		"content": func() recipe.Recipe { write(t, filepath.Join(src, "a"), "two"); return base },
		"file":    func() recipe.Recipe { write(t, filepath.Join(src, "d/b"), ""); return base },
	}
	seen := map[string]string{key: "base"}
	for _, what := range []string{"name", "salt", "content", "file"} {
		got := cache.Key(changes[what]())
		if old, ok := seen[got]; ok {
			t.Errorf("a change of %s keeps the key of %s", what, old)
		}
		seen[got] = what
	}
}

func TestGetBuildsOnceForManyAtOnce(t *testing.T) {
	cache, err := recipe.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var builds atomic.Int32
	r := recipe.Recipe{Name: "x", Build: func(_ context.Context, out string) error {
		builds.Add(1)
		return os.WriteFile(filepath.Join(out, "f"), []byte("done"), 0o644)
	}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := cache.Get(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != "done" {
				t.Errorf("artefact holds %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	root := t.TempDir()
	cache, err := recipe.At(root)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	r := recipe.Recipe{Name: "x", Build: func(_ context.Context, out string) error {
		write(t, filepath.Join(out, "half"), "")
		return boom
	}}
	if _, err := cache.Get(t.Context(), r); !errors.Is(err, boom) {
		t.Fatalf("got %v, want %v", err, boom)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("a failed build left %s", e.Name())
		}
	}
}

func TestGetWaitsOnlyUntilItsContextEnds(t *testing.T) {
	cache, err := recipe.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	started, release := make(chan struct{}), make(chan struct{})
	slow := recipe.Recipe{Name: "x", Build: func(context.Context, string) error {
		close(started)
		<-release
		return nil
	}}
	done := make(chan error, 1)
	go func() { _, err := cache.Get(t.Context(), slow); done <- err }()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.Get(ctx, slow); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBadRecipes(t *testing.T) {
	cache, err := recipe.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		r    recipe.Recipe
		want string
	}{
		"name with slash": {recipe.Recipe{Name: "a/b"}, "not a plain file name"},
		"missing input":   {recipe.Recipe{Name: "a", Inputs: []string{"/does/not/exist"}}, "no such file"},
		"no build":        {recipe.Recipe{Name: "a"}, "no build step"},
	} {
		if _, err := cache.Get(t.Context(), tc.r); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, tc.want)
		}
	}
}
