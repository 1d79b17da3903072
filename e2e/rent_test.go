//go:build lab

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
	"github.com/gpuctl/gpuctl/e2e/scene"
)

// rentURL names the variable that turns this test binary into the command line
// of a rental company: "create" and "destroy" of the machine $NAME.
const rentURL = "GPUCTL_E2E_RENT"

// rents says that this process is the command line of a rental company, and no
// test, and what it came to.
func rents() (code int, is bool) {
	url := os.Getenv(rentURL)
	if url == "" {
		return 0, false
	}
	if err := rentCommand(url, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// rentCommand asks the company and writes what it says of a new machine to $RECORD.
func rentCommand(url, verb string) error {
	resp, err := http.Post(url+"/"+verb+"/"+os.Getenv("NAME"), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err != nil || verb != "create" {
		return err
	}
	return os.WriteFile(os.Getenv("RECORD"), body, 0o600)
}

// rental is a company that rents out machines of the lab; it ends with the test
// and takes back what is still rented then.
func rental(t *testing.T, s *scene.Scene) (create, destroy string) {
	t.Helper()
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, verb, _ := strings.Cut(r.URL.Path, "/")
		verb, name, _ := strings.Cut(verb, "/")
		body, err := rentOut(r, s, verb, name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(company.Close)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // the test's own has ended
		defer cancel()
		machines, err := s.Lab.All(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, m := range machines {
			if strings.HasPrefix(m.Name, s.Name+"-") {
				if err := m.Remove(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := fmt.Sprintf("env %s=%s '%s' ", rentURL, company.URL, self)
	return command + "create", command + "destroy"
}

func rentOut(r *http.Request, s *scene.Scene, verb, name string) ([]byte, error) {
	if verb == "destroy" {
		m, err := s.Lab.Get(r.Context(), name)
		if err != nil {
			return nil, err
		}
		return nil, m.Remove(r.Context())
	}
	spec := machine.Spec{Name: name}
	if !strings.HasSuffix(name, "-server") {
		spec.GPU = scene.H100(1)
	}
	m, err := s.Lab.Machine(r.Context(), spec)
	if err != nil {
		return nil, err
	}
	key, err := m.Exec(r.Context(), "cat /etc/ssh/ssh_host_ed25519_key.pub")
	if err != nil {
		return nil, err
	}
	gpus := 0
	if spec.GPU != nil {
		gpus = 1
	}
	return json.Marshal(map[string]any{"host": m.IP, "port": m.Port, "host_key": key, "gpus": gpus})
}
