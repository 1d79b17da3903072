package state

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gpuctl/gpuctl/internal/event"
)

// Run is the record of one run: events.jsonl, report.json, debug.log and
// timeline.svg in a directory of its own, mode 0600, without secrets. It is an
// event.Sink.
type Run struct {
	// ID is when the run began and a random end, "20261201T050702Z-9f3a"; it sorts by time.
	ID       string
	path     string
	redactor *Redactor

	mu       sync.Mutex
	events   *os.File
	debug    *os.File
	failed   error
	timeline timeline
	last     time.Time
}

// keep is how many records stay; older ones go when a new run begins.
const keep = 50

// NewRun begins a record and makes it the latest. What r knows is masked.
func (d Dir) NewRun(now time.Time, r *Redactor) (*Run, error) {
	id, err := d.newID(now)
	if err != nil {
		return nil, fmt.Errorf("recording the run: %w", err)
	}
	run := &Run{ID: id, path: filepath.Join(d.path, "runs", id), redactor: r}
	if err := d.prune(); err != nil {
		return nil, err
	}
	if run.events, err = create(run.path, "events.jsonl"); err != nil {
		return nil, err
	}
	if run.debug, err = create(run.path, "debug.log"); err != nil {
		return nil, errors.Join(err, run.events.Close())
	}
	// A file and no symbolic link: Windows lets few users make those.
	if err := replace(filepath.Join(d.path, "latest"), []byte(run.ID+"\n")); err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return run, nil
}

// newID makes the folder of a new run. Two that begin in the same second can end up
// with the same name, once in 65,536 times: the later one takes another.
func (d Dir) newID(now time.Time) (string, error) {
	end := make([]byte, 2)
	for {
		if _, err := rand.Read(end); err != nil {
			return "", err
		}
		id := now.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(end)
		if err := os.Mkdir(filepath.Join(d.path, "runs", id), 0o700); !errors.Is(err, fs.ErrExist) {
			return id, err
		}
	}
}

// prune removes the oldest records; their names sort by time.
func (d Dir) prune() error {
	runs, err := os.ReadDir(filepath.Join(d.path, "runs"))
	if err != nil {
		return fmt.Errorf("looking at old records: %w", err)
	}
	for i := 0; i < len(runs)-keep; i++ {
		if err := os.RemoveAll(filepath.Join(d.path, "runs", runs[i].Name())); err != nil {
			return fmt.Errorf("removing an old record: %w", err)
		}
	}
	return nil
}

func create(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("recording the run: %w", err)
	}
	return f, nil
}

// Path is the run's directory.
func (r *Run) Path() string { return r.path }

// Emit appends the event. A record that cannot be written does not stop the
// run; Close tells.
func (r *Run) Emit(e event.Event) {
	e.Text, e.Reason, e.Error = r.redactor.String(e.Text), r.redactor.String(e.Reason), r.redactor.String(e.Error)
	line, err := json.Marshal(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timeline.add(e)
	r.last = e.Time
	if err == nil {
		_, err = r.events.Write(append(line, '\n'))
	}
	if err != nil && r.failed == nil {
		r.failed = err
	}
}

// Debug is the debug log, redacted line by line.
func (r *Run) Debug() io.Writer { return r.redactor.Writer(r.debug) }

// WriteReport keeps v as report.json.
func (r *Run) WriteReport(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return replace(filepath.Join(r.path, "report.json"), []byte(r.redactor.String(string(data))+"\n"))
}

// Close draws the timeline, ends the record and returns what went wrong in writing it.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.timeline.spans) > 0 {
		err := replace(filepath.Join(r.path, "timeline.svg"), []byte(r.timeline.svg(r.last)))
		r.failed = errors.Join(r.failed, err)
	}
	if err := errors.Join(r.failed, r.events.Close(), r.debug.Close()); err != nil {
		return fmt.Errorf("recording the run: %w", err)
	}
	return nil
}

// Latest is the directory of the newest run; fs.ErrNotExist when there was none.
func (d Dir) Latest() (string, error) {
	id, err := os.ReadFile(filepath.Join(d.path, "latest"))
	if err != nil {
		return "", fmt.Errorf("finding the latest run: %w", err)
	}
	return filepath.Join(d.path, "runs", filepath.Base(strings.TrimSpace(string(id)))), nil
}
