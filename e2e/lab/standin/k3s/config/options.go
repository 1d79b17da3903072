package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options are the resolved options of one command.
type Options struct {
	Command string
	// Args is the command line after the configuration file was merged in,
	// as annotation k3s.io/node-args shows it.
	Args []string
	// Skipped are keys of the file that no flag of the command has.
	Skipped []string

	values map[string][]string
	flags  map[string]Flag
}

// UnknownFlagError says that the command does not know a flag.
type UnknownFlagError struct{ Flag string }

func (e *UnknownFlagError) Error() string { return "flag provided but not defined: -" + e.Flag }

// Parse resolves the options of command ("server" or "agent") from the
// arguments after the command word. A scalar is taken from the command line,
// else from the file, else from the environment, else it has its default;
// values of lists are joined. An unknown key of the file is skipped on a
// server and an error on an agent.
func Parse(command string, args []string, getenv func(string) string) (*Options, error) {
	role := Server
	if command == "agent" {
		role = Agent
	}
	o := &Options{Command: command, values: map[string][]string{}, flags: map[string]Flag{}}
	for _, f := range Flags() {
		if f.Role&role != 0 {
			o.flags[f.Name] = f
		}
	}
	fromFile, err := FileArgs(configFile(args, getenv))
	if err != nil {
		return nil, err
	}
	if role == Server {
		fromFile = o.skipUnknown(fromFile)
	}
	o.Args = append(append([]string{command}, fromFile...), args...)
	if err := o.parse(o.Args[1:]); err != nil {
		return nil, err
	}
	o.fill(getenv)
	return o, nil
}

// configFile finds the file: the environment wins over the flag.
func configFile(args []string, getenv func(string) string) string {
	if f := getenv("K3S_CONFIG_FILE"); f != "" {
		return f
	}
	for i, a := range args {
		for _, name := range []string{"--config", "-config", "-c"} {
			if v, ok := strings.CutPrefix(a, name+"="); ok {
				return v
			}
			if a == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return "/etc/rancher/k3s/config.yaml"
}

func (o *Options) skipUnknown(args []string) []string {
	return slices.DeleteFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		_, known := o.lookup(name)
		if !known {
			o.Skipped = append(o.Skipped, strings.TrimSuffix(a[:strings.Index(a, "=")], "="))
		}
		return !known
	})
}

func (o *Options) lookup(name string) (Flag, bool) {
	if f, ok := o.flags[name]; ok {
		return f, true
	}
	for _, f := range o.flags {
		if f.Short != "" && f.Short == name {
			return f, true
		}
	}
	return Flag{}, false
}

func (o *Options) parse(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			continue // k3s takes no positional arguments and ignores them
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		f, known := o.lookup(name)
		if !known {
			return &UnknownFlagError{name}
		}
		if !hasValue {
			switch {
			case f.Kind == Bool:
				value = "true"
			case len(args) == 0:
				return fmt.Errorf("flag needs an argument: -%s", name)
			default:
				value, args = args[0], args[1:]
			}
		}
		if err := o.set(f, value); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) set(f Flag, value string) error {
	if f.Kind == Bool {
		if _, err := strconv.ParseBool(value); err != nil {
			return fmt.Errorf("invalid boolean value %q for -%s: parse error", value, f.Name)
		}
	}
	if f.Kind == List {
		o.values[f.Name] = append(o.values[f.Name], value)
		return nil
	}
	o.values[f.Name] = []string{value}
	return nil
}

// fill takes environment and default for what neither file nor command line gave.
func (o *Options) fill(getenv func(string) string) {
	for name, f := range o.flags {
		if _, given := o.values[name]; given {
			continue
		}
		if f.Env != "" && getenv(f.Env) != "" {
			o.values[name] = []string{getenv(f.Env)}
		} else if f.Default != "" {
			o.values[name] = []string{f.Default}
		}
	}
}

// String is the value of a scalar option, empty if it is not set.
func (o *Options) String(name string) string {
	if v := o.values[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// Bool is the value of a boolean option.
func (o *Options) Bool(name string) bool {
	b, _ := strconv.ParseBool(o.String(name))
	return b
}

// List is the value of a repeatable option, split at commas where k3s does so.
func (o *Options) List(name string) []string {
	if !o.flags[name].Split {
		return o.values[name]
	}
	var all []string
	for _, v := range o.values[name] {
		for item := range strings.SplitSeq(v, ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, item)
			}
		}
	}
	return all
}

// First is the first value of a repeatable option, empty if there is none.
func (o *Options) First(name string) string {
	if v := o.List(name); len(v) > 0 {
		return v[0]
	}
	return ""
}
