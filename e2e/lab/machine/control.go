package machine

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Start powers the machine on; it does not wait for sshd.
func (m *Machine) Start(ctx context.Context) error { return m.docker(ctx, "start") }

// Stop shuts the machine down in order.
func (m *Machine) Stop(ctx context.Context) error { return m.docker(ctx, "stop", "--time", "30") }

// Reboot restarts the machine in order and waits until sshd answers again.
func (m *Machine) Reboot(ctx context.Context) error {
	if err := m.docker(ctx, "restart", "--time", "30"); err != nil {
		return err
	}
	return m.Wait(ctx)
}

// Kill cuts the power. The machine stays off until Start.
func (m *Machine) Kill(ctx context.Context) error { return m.docker(ctx, "kill") }

// Freeze stops all processes of the machine: connections stay open and nothing
// answers.
func (m *Machine) Freeze(ctx context.Context) error { return m.docker(ctx, "pause") }

// Thaw ends Freeze.
func (m *Machine) Thaw(ctx context.Context) error { return m.docker(ctx, "unpause") }

// Remove deletes the machine and its disks.
func (m *Machine) Remove(ctx context.Context) error {
	return m.docker(ctx, "rm", "--force", "--volumes")
}

func (m *Machine) docker(ctx context.Context, args ...string) error {
	if _, err := m.engine.Run(ctx, append(args, m.container)...); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	return nil
}

// Copy lays files in the machine, by absolute path.
func (m *Machine) Copy(ctx context.Context, files map[string]File) error {
	archive, err := pack(files)
	if err != nil {
		return err
	}
	if _, err := m.engine.Pipe(ctx, archive, "cp", "-", m.container+":/"); err != nil {
		return fmt.Errorf("copying files to machine %s: %w", m.Name, err)
	}
	return nil
}

// Exec runs a shell script as root inside the machine, past SSH, and returns
// its standard output. It is for what a test asserts, never for what the
// product does.
func (m *Machine) Exec(ctx context.Context, script string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := m.engine.Command(ctx, "exec", "-i", m.container, "sh", "-s")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(script), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("in machine %s: %w: %s", m.Name, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Container is the name of the machine's container, for `docker exec` by hand.
func (m *Machine) Container() string { return m.container }
