package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gpuctl/gpuctl/e2e/lab/dockerd"
)

// Labels by which a lab finds its machines again.
const (
	LabelName  = "gpuctl.lab.machine"
	LabelIP    = "gpuctl.lab.ip" // all addresses, joined by commas
	LabelPort  = "gpuctl.lab.port"
	LabelReach = "gpuctl.lab.reach"
)

// bootLimit is how long a machine may take until it answers on its SSH port.
const bootLimit = 60 * time.Second

// Machine is a machine that was created; it may be running or not.
type Machine struct {
	// Name is the host name.
	Name string
	// IP is the address that other machines of its network and, as far as
	// Reach goes, the host reach it at. It stays the same over reboots.
	IP string
	// IPs are its addresses in all its networks; IP is the first.
	IPs []string
	// Port is sshd's.
	Port int
	// Reach is what the host may reach.
	Reach Reach

	engine    *dockerd.Engine
	container string
}

// Place is where and from what a machine is made.
type Place struct {
	Engine *dockerd.Engine
	// Lab is the lab's id.
	Lab string
	// Image is the tag that Image returned.
	Image string
	// AuthorizedKey is the line that opens root, ubuntu and ops.
	AuthorizedKey []byte
	// DNS is the address of the machine's name server.
	DNS string
}

// Link is a machine's place in a network.
type Link struct {
	Network
	IP string
}

// Create makes a machine with the given links, without starting it. The first
// link holds its default route.
func Create(ctx context.Context, p Place, spec Spec, links []Link) (*Machine, error) {
	spec = spec.withDefaults()
	var ips []string
	for _, l := range links {
		ips = append(ips, l.IP)
	}
	m := &Machine{
		Name: spec.Name, IP: ips[0], IPs: ips, Port: spec.SSHPort, Reach: spec.Reach,
		engine: p.Engine, container: "gpuctl-" + p.Lab + "-" + spec.Name,
	}
	if err := m.create(ctx, p, spec, links); err != nil {
		return nil, fmt.Errorf("creating machine %s: %w", spec.Name, err)
	}
	return m, nil
}

func (m *Machine) create(ctx context.Context, p Place, spec Spec, links []Link) error {
	args := []string{
		"create", "--name", m.container, "--hostname", m.Name,
		"--label", dockerd.Label + "=" + p.Lab, "--label", LabelName + "=" + m.Name, "--label", LabelIP + "=" + strings.Join(m.IPs, ","),
		"--label", LabelPort + "=" + strconv.Itoa(m.Port), "--label", LabelReach + "=" + string(m.Reach),
		"--network", links[0].Name, "--ip", m.IP,
		// A reboot from inside ends the container; the engine starts it again.
		"--restart", "unless-stopped",
	}
	if spec.Unprivileged {
		args = append(args, "--entrypoint", "/usr/lib/lab/init")
	} else {
		args = append(args, "--privileged", "--security-opt", "label=disable", "--cgroupns", "private",
			"--tmpfs", "/run:exec", "--tmpfs", "/tmp:exec",
			// The root of a container is an overlay, which cannot hold the
			// overlays of a containerd inside; this is a plain file system.
			"--volume", "/var/lib")
	}
	for _, v := range spec.Volumes {
		args = append(args, "--volume", v)
	}
	if spec.Memory > 0 {
		args = append(args, "--memory", strconv.FormatInt(spec.Memory, 10))
	}
	if _, err := m.engine.Run(ctx, append(args, p.Image)...); err != nil {
		return err
	}
	var gateways []string
	for i, l := range links {
		gateways = append(gateways, l.Gateway)
		if i == 0 {
			continue
		}
		if _, err := m.engine.Run(ctx, "network", "connect", "--ip", l.IP, l.Name, m.container); err != nil {
			return err
		}
	}
	return m.Copy(ctx, spec.files(p.AuthorizedKey, spec.environment(p.DNS, gateways)))
}

// All finds the machines of a lab, running or not.
func All(ctx context.Context, e *dockerd.Engine, lab string) ([]*Machine, error) {
	format := fmt.Sprintf(`{{.Names}}|{{.Label %q}}|{{.Label %q}}|{{.Label %q}}|{{.Label %q}}`, LabelName, LabelIP, LabelPort, LabelReach)
	lines, err := e.Lines(ctx, "ps", "--all", "--filter", "label="+dockerd.Label+"="+lab, "--format", format)
	if err != nil {
		return nil, fmt.Errorf("listing machines of lab %s: %w", lab, err)
	}
	var found []*Machine
	for _, line := range lines {
		f := strings.Split(line, "|")
		if len(f) != 5 {
			return nil, fmt.Errorf("listing machines of lab %s: docker printed %q", lab, line)
		}
		port, err := strconv.Atoi(f[3])
		if err != nil {
			return nil, fmt.Errorf("listing machines of lab %s: port of %s: %w", lab, f[0], err)
		}
		ips := strings.Split(f[2], ",")
		found = append(found, &Machine{Name: f[1], IP: ips[0], IPs: ips, Port: port, Reach: Reach(f[4]), engine: e, container: f[0]})
	}
	return found, nil
}

// Wait waits until sshd answers.
func (m *Machine) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	reason := errors.New("not tried yet")
	for {
		if reason = m.answers(ctx); reason == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for ssh of machine %s: %w: %w: %s", m.Name, ctx.Err(), reason, m.lastWords())
		case <-tick.C:
		}
	}
}

// answers asks sshd for its banner; where the host may not reach it, the
// machine itself is asked.
func (m *Machine) answers(ctx context.Context) error {
	if m.Reach == ReachNone {
		_, err := m.Exec(ctx, fmt.Sprintf("nc -z 127.0.0.1 %d", m.Port))
		return err
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(m.IP, strconv.Itoa(m.Port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	banner, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(banner, "SSH-") {
		err = fmt.Errorf("banner %q", banner)
	}
	return err
}

// lastWords is the end of the machine's console.
func (m *Machine) lastWords() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := m.engine.Command(ctx, "logs", "--tail", "5", m.container).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}
