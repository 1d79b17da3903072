package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestUUIDsBelongToTheMachine(t *testing.T) {
	a, again, b := H100(2).For("gpu-1"), H100(2).For("gpu-1"), H100(2).For("gpu-2")
	if !reflect.DeepEqual(a, again) {
		t.Error("the same machine gets other GPUs")
	}
	seen := map[string]bool{}
	for _, u := range append(a.UUIDs(), b.UUIDs()...) {
		if seen[u] {
			t.Errorf("%s is there twice", u)
		}
		seen[u] = true
	}
}

func TestLibraryCarriesTheScenario(t *testing.T) {
	want := A100(2).For("gpu-1")
	want.Faults.Lost = []int{1}
	data, err := want.AppendTo([]byte("\x7fELF and more"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLibrary(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBareLibraryHasNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(path, []byte("\x7fELF"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLibrary(path); !errors.Is(err, ErrNoTrailer) {
		t.Errorf("err = %v, want ErrNoTrailer", err)
	}
}

func TestImpossibleScenarios(t *testing.T) {
	for name, change := range map[string]func(*Scenario){
		"driver":  func(s *Scenario) { s.Driver = "latest" },
		"library": func(s *Scenario) { s.Faults.Library = "../../etc" },
		"pci":     func(s *Scenario) { s.GPUs[0].PCI = "1002:74a1" },
		"compute": func(s *Scenario) { s.GPUs[0].ComputeCapability = "" },
	} {
		s := T4(1)
		if change(&s); s.Validate() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
