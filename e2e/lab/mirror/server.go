// Package mirror serves what a lab machine would fetch from the internet: k3s
// releases, an apt repository, Helm charts and an OCI registry, in one process
// on one port, with a log of every request.
package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Config says what a mirror serves.
type Config struct {
	// Dir holds k3s/, apt/ and charts/ as they are served, the registry's
	// manifests, the request log and the file that tells where it listens.
	Dir string
	// Blobs is the registry's blob store; several mirrors may share one.
	Blobs string
	// Listen is the address, host:port.
	Listen string
	// Build names the program that serves; Start replaces a mirror whose
	// program differs.
	Build string
}

// Running is what a mirror writes into its directory once it listens.
type Running struct {
	Address string `json:"address"` // host:port
	PID     int    `json:"pid"`
	Build   string `json:"build"`
}

// Request is a line of the request log.
type Request struct {
	Time   time.Time `json:"time"`
	From   string    `json:"from"` // the client's IP address
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Status int       `json:"status"`
	Bytes  int64     `json:"bytes"` // of the answer's body
	Millis int64     `json:"millis"`
}

const (
	logName     = "requests.jsonl"
	runningName = "mirror.json"
)

// Serve serves until ctx ends.
func Serve(ctx context.Context, c Config) error {
	handler, err := newHandler(ctx, c)
	if err != nil {
		return fmt.Errorf("starting the mirror: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("starting the mirror: %w", err)
	}
	running, err := json.Marshal(Running{Address: listener.Addr().String(), PID: os.Getpid(), Build: c.Build})
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(c.Dir, runningName), running); err != nil {
		return fmt.Errorf("starting the mirror: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the mirror: %w", err)
	}
	return nil
}

func newHandler(ctx context.Context, c Config) (http.Handler, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	reg, err := newRegistry(ctx, c.Blobs, filepath.Join(c.Dir, "manifests"))
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.Dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/v2/", reg)
	for _, part := range []string{"k3s", "apt", "charts"} {
		mux.Handle("/"+part+"/", http.StripPrefix("/"+part, http.FileServer(http.Dir(filepath.Join(c.Dir, part)))))
	}
	return logged(mux, log), nil
}

// logged writes a line for each request once it is answered.
func logged(next http.Handler, log *os.File) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		start := time.Now()
		counted := &counter{ResponseWriter: w, status: http.StatusOK}
		path := req.URL.Path // the mux's prefix stripping works on a copy
		next.ServeHTTP(counted, req)
		from, _, _ := strings.Cut(req.RemoteAddr, ":")
		line, err := json.Marshal(Request{
			Time: start.UTC(), From: from, Method: req.Method, Path: path,
			Status: counted.status, Bytes: counted.bytes, Millis: time.Since(start).Milliseconds(),
		})
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = log.Write(append(line, '\n'))
	})
}

// counter counts the bytes of an answer.
type counter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.bytes += int64(n)
	return n, err
}

// writeFile replaces a file in one step.
func writeFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(content); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
