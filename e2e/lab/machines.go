package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/gpuctl/gpuctl/e2e/lab/machine"
)

// Machine starts a machine, or finds the one of that name, and waits until its
// sshd answers.
func (l *Lab) Machine(ctx context.Context, spec machine.Spec) (*machine.Machine, error) {
	machines, err := l.Machines(ctx, spec)
	if err != nil {
		return nil, err
	}
	return machines[0], nil
}

// Machines is Machine for several at once; the result is in the order of specs.
func (l *Lab) Machines(ctx context.Context, specs ...machine.Spec) ([]*machine.Machine, error) {
	machines, err := l.create(ctx, specs)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range machines {
		group.Go(func() error {
			if err := m.Start(ctx); err != nil {
				return err
			}
			return m.Wait(ctx)
		})
	}
	return machines, group.Wait()
}

// create creates those machines of specs that are not there. Addresses are
// chosen under the lab's lock.
func (l *Lab) create(ctx context.Context, specs []machine.Spec) ([]*machine.Machine, error) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	existing, err := l.All(ctx)
	if err != nil {
		return nil, err
	}
	byName, used := map[string]*machine.Machine{}, []string{}
	for _, m := range existing {
		byName[m.Name], used = m, append(used, m.IPs...)
	}
	machines := make([]*machine.Machine, len(specs))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, spec := range specs {
		if m, ok := byName[spec.Name]; ok {
			machines[i] = m
			continue
		}
		networks, err := l.networksOf(ctx, spec)
		if err != nil {
			return nil, fmt.Errorf("creating machine %s: %w", spec.Name, err)
		}
		links := make([]machine.Link, len(networks))
		for j, n := range networks {
			ip, err := freeAddress(n, used)
			if err != nil {
				return nil, fmt.Errorf("creating machine %s: %w", spec.Name, err)
			}
			links[j], used = machine.Link{Network: n, IP: ip}, append(used, ip)
		}
		spec.Files = l.withOverlay(spec.Files)
		group.Go(func() (err error) {
			machines[i], err = machine.Create(groupCtx, l.place, spec, links)
			return err
		})
	}
	return machines, group.Wait()
}

func (l *Lab) withOverlay(files map[string]machine.File) map[string]machine.File {
	all := maps.Clone(l.overlay)
	if all == nil {
		all = map[string]machine.File{}
	}
	maps.Copy(all, files)
	return all
}

func (l *Lab) networksOf(ctx context.Context, spec machine.Spec) ([]machine.Network, error) {
	if len(spec.Networks) == 0 {
		return []machine.Network{l.Main}, nil
	}
	var networks []machine.Network
	for _, name := range spec.Networks {
		if name == MainNetwork {
			networks = append(networks, l.Main)
			continue
		}
		n, err := l.network(ctx, "-"+name)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	return networks, nil
}

// MainNetwork names the lab's main network in a machine.Spec.
const MainNetwork = "main"

// All finds all machines of the lab, by name.
func (l *Lab) All(ctx context.Context) ([]*machine.Machine, error) {
	machines, err := machine.All(ctx, l.Engine, l.ID)
	slices.SortFunc(machines, func(a, b *machine.Machine) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return machines, err
}

// SSH is the command line that logs user in on m with OpenSSH.
func (l *Lab) SSH(user string, m *machine.Machine) []string {
	return []string{
		"ssh", "-i", l.Key(), "-p", strconv.Itoa(m.Port), "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", user + "@" + m.IP,
	}
}

// Get finds a machine by its name.
func (l *Lab) Get(ctx context.Context, name string) (*machine.Machine, error) {
	machines, err := l.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range machines {
		if m.Name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("lab %s has no machine %s", l.ID, name)
}
