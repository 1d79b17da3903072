package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gpuctl/gpuctl/internal/inventory"
)

func (d Dir) inventoryFile() string { return filepath.Join(d.path, "inventory.json") }

// Inventory is the machines that the last run took from another tool; known is
// false before the first. It serves to say what has changed and nothing else.
func (d Dir) Inventory() (machines []inventory.Machine, known bool, err error) {
	data, err := os.ReadFile(d.inventoryFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &machines)
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the last inventory: %w", err)
	}
	return machines, true, nil
}

// KeepInventory remembers the machines for the next run.
func (d Dir) KeepInventory(machines []inventory.Machine) error {
	data, err := json.MarshalIndent(machines, "", "  ")
	if err != nil {
		return fmt.Errorf("keeping the inventory: %w", err)
	}
	return replace(d.inventoryFile(), append(data, '\n'))
}

func (d Dir) idleFile() string { return filepath.Join(d.path, "idle.json") }

// Idle says since when machines have been seen idle, by name.
func (d Dir) Idle() (map[string]time.Time, error) {
	data, err := os.ReadFile(d.idleFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out map[string]time.Time
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading since when machines are idle: %w", err)
	}
	return out, nil
}

// KeepIdle remembers it for the next time.
func (d Dir) KeepIdle(since map[string]time.Time) error {
	data, err := json.Marshal(since)
	if err != nil {
		return fmt.Errorf("keeping since when machines are idle: %w", err)
	}
	return replace(d.idleFile(), append(data, '\n'))
}
