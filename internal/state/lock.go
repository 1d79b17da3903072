package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Holder is who holds a cluster's lock.
type Holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// LockedError says that another run works on the cluster.
type LockedError struct {
	// Holder has PID 0 when the other run has not said who it is yet.
	Holder Holder
}

func (e *LockedError) Error() string {
	if e.Holder.PID == 0 {
		return "another gpuctl works on this cluster"
	}
	return fmt.Sprintf("another gpuctl works on this cluster: %s, process %d, since %s",
		e.Holder.Command, e.Holder.PID, e.Holder.Since.Local().Format("2006-01-02 15:04:05"))
}

// Lock is held until Unlock or the end of the process, however it ends: it is
// the operating system's file lock, so that a killed run leaves none behind.
type Lock struct {
	file   *flock.Flock
	holder string
}

// Lock takes the cluster's lock without waiting. It returns *LockedError when
// another process has it.
func (d Dir) Lock(command string) (*Lock, error) {
	l := &Lock{file: flock.New(filepath.Join(d.path, "lock"), flock.SetPermissions(0o600)), holder: filepath.Join(d.path, "lock.json")}
	got, err := l.file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", d.path, err)
	}
	if !got {
		// Who holds it stands in a file of its own: Windows lets nobody read a locked one.
		var locked LockedError
		if data, err := os.ReadFile(l.holder); err == nil && json.Unmarshal(data, &locked.Holder) != nil {
			locked.Holder = Holder{}
		}
		return nil, &locked
	}
	data, err := json.Marshal(Holder{PID: os.Getpid(), Command: command, Since: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = replace(l.holder, data)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", d.path, err), l.file.Unlock())
	}
	return l, nil
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error {
	if err := os.Remove(l.holder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, l.file.Unlock())
	}
	return l.file.Unlock()
}
