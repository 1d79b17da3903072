package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/config"
)

// askMachines asks on the terminal for what the command line did not say.
// Answers that are wrong are asked for again, three times at most.
func (a *app) askMachines(ctx context.Context, o *initOptions) ([]string, error) {
	in := bufio.NewReader(a.in)
	if o.hosts.Provider == "" {
		err := a.askUntil(ctx, in, "Provider (empty if none of: gpuctl init --help): ", func(answer string) error {
			if _, err := providerOf(answer); err != nil {
				return err
			}
			o.hosts.Provider = strings.ToLower(answer)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var hosts []string
	err := a.askUntil(ctx, in, "Machines, [user@]host[:port], the first runs the control plane too: ", func(answer string) error {
		hosts = strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
		if len(hosts) == 0 {
			return usagef("at least one machine")
		}
		_, err := config.FromHosts(hosts, o.hosts)
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.hosts.GPUs > 0 {
		return hosts, nil
	}
	return hosts, a.askUntil(ctx, in, "GPUs in each machine (empty if not known): ", func(answer string) error {
		if answer == "" {
			return nil
		}
		n, err := strconv.Atoi(answer)
		if err != nil || n < 1 || n > 1024 {
			return usagef("%q is no number of GPUs", answer)
		}
		o.hosts.GPUs = n
		return nil
	})
}

func (a *app) askUntil(ctx context.Context, in *bufio.Reader, question string, take func(string) error) error {
	for try := 1; ; try++ {
		if _, err := fmt.Fprint(a.err, question); err != nil {
			return err
		}
		line, err := readLine(ctx, in)
		if err != nil {
			return err
		}
		wrong := take(strings.TrimSpace(line))
		if wrong == nil {
			return nil
		}
		if try == 3 {
			return &usageError{wrong}
		}
		if _, err := fmt.Fprintf(a.err, "%v\n", wrong); err != nil {
			return err
		}
	}
}
