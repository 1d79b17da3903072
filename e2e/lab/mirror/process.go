package mirror

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Start makes sure that a mirror serves c in a process of its own and returns
// its address. program is the built command cmd/mirror. A mirror that runs
// already is kept if it is of the same build. host is the address to listen
// at; the port is the one of the last time if that is free, else any.
func Start(ctx context.Context, program, host string, c Config) (address string, err error) {
	last, ok := Find(c.Dir)
	if ok && last.Build == c.Build && strings.HasPrefix(last.Address, host+":") && last.answers(ctx) {
		return last.Address, nil
	}
	if err := Stop(c.Dir); err != nil {
		return "", err
	}
	c.Listen = freeAddress(host, last.Address)
	address, err = c.start(ctx, program)
	if err != nil {
		return "", fmt.Errorf("starting the mirror: %w", err)
	}
	return address, nil
}

func (c Config) start(ctx context.Context, program string) (string, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	log, err := os.Create(filepath.Join(c.Dir, "mirror.log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	cmd := exec.Command(program, // not bound to ctx: it outlives this process
		"--dir", c.Dir, "--blobs", c.Blobs, "--listen", c.Listen, "--build", c.Build)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			return "", fmt.Errorf("it ended: %v: %s", err, strings.TrimSpace(string(text)))
		case <-ctx.Done():
			return "", fmt.Errorf("it does not answer: %w", ctx.Err())
		case <-tick.C:
			if r, ok := Find(c.Dir); ok && r.PID == cmd.Process.Pid && r.answers(ctx) {
				return r.Address, nil
			}
		}
	}
}

// Find reads where the mirror of dir listens or listened last. ok is false if
// none was ever started.
func Find(dir string) (r Running, ok bool) {
	content, err := os.ReadFile(filepath.Join(dir, runningName))
	if err != nil {
		return Running{}, false
	}
	return r, json.Unmarshal(content, &r) == nil
}

// Stop ends the mirror of dir, if one runs.
func Stop(dir string) error {
	r, ok := Find(dir)
	if !ok || !r.alive(dir) {
		return nil
	}
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping the mirror: %w", err)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !r.alive(dir) {
			return nil
		}
	}
	return fmt.Errorf("stopping the mirror: process %d has not ended", r.PID)
}

// alive says whether the process runs and is a mirror of dir; the number alone
// may be another process's by now.
func (r Running) alive(dir string) bool {
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(r.PID) + "/cmdline")
	return err == nil && strings.Contains(string(cmdline), "mirror\x00--dir\x00"+dir+"\x00")
}

func (r Running) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Address+"/v2/", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// freeAddress is wanted if it belongs to host and can be listened at, so that
// machines configured before a restart still find the mirror.
func freeAddress(host, wanted string) string {
	if h, _, err := net.SplitHostPort(wanted); err == nil && h == host {
		if l, err := net.Listen("tcp", wanted); err == nil {
			l.Close()
			return wanted
		}
	}
	return net.JoinHostPort(host, "0")
}

// Requests reads the request log of the mirror in dir from the byte offset
// from, and returns the offset to go on at.
func Requests(dir string, from int64) (requests []Request, next int64, err error) {
	f, err := os.Open(filepath.Join(dir, logName))
	if err != nil {
		return nil, from, fmt.Errorf("reading the mirror's log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(from, 0); err != nil {
		return nil, from, fmt.Errorf("reading the mirror's log: %w", err)
	}
	r := bufio.NewReader(f)
	for next = from; ; {
		line, err := r.ReadBytes('\n')
		if err != nil { // the rest is a line that is being written
			return requests, next, nil
		}
		var req Request
		if err := json.Unmarshal(line, &req); err != nil {
			return requests, next, fmt.Errorf("reading the mirror's log: %w", err)
		}
		requests = append(requests, req)
		next += int64(len(line))
	}
}
