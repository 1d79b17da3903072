package config

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuctl/gpuctl/internal/diag/nearest"
	"github.com/gpuctl/gpuctl/internal/providers"
)

// checker holds values against what may reach ssh, k3s, Helm and file paths.
type checker struct {
	*decoder
	patterns
}

// check adds a problem for every value that is well formed YAML and still wrong.
func (c *Config) check(d *decoder) {
	k := checker{d, newPatterns()}
	if c.Metadata.Name != "" {
		k.match(k.name, c.Metadata.Name, "metadata.name", "lower case letters, digits and '-', at most 63, starting and ending with a letter or digit")
	} else if _, given := d.at["metadata.name"]; given && !k.failed("metadata.name") {
		k.problem("metadata.name", "is empty")
	}
	s := &c.Spec
	k.provider(s.Provider)
	k.ssh(s.SSH)
	k.kubernetes(s.Kubernetes)
	k.existing(s)
	k.groups(s.Groups)
	k.gpu(s.GPU)
	k.operatorDrivers(s)
	k.pluginDocuments(s)
	k.sources(s.Sources)
	k.twice(s)
	k.references(s)
	k.proxy(s.Proxy)
	k.where(s)
	k.machines(s)
}

// problem adds a problem at the nearest position known for a field.
func (k checker) problem(field, format string, args ...any) {
	p := Problem{Field: field, Message: fmt.Sprintf(format, args...)}
	for at := field; ; {
		if pos, ok := k.at[at]; ok && pos.line > 0 {
			p.Line, p.Column = pos.line, pos.column
			break
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			break
		}
		at = at[:cut]
	}
	k.problems = append(k.problems, p)
}

func (k checker) match(re *regexp.Regexp, value, field, rule string) {
	if value != "" && !re.MatchString(value) {
		k.problem(field, "%q is not allowed here: %s", value, rule)
	}
}

func (k checker) provider(name string) {
	if _, known := providers.Find(name); name == "" || known {
		return
	}
	hint := ""
	if near := nearest.Of(name, providers.Names()); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	k.problem("spec.provider", "%q is not a provider that is known%s; leave it out for others", name, hint)
}

func (k checker) ssh(s SSH) {
	k.match(k.user, s.User, "spec.ssh.user", userRule)
	k.port(s.Port, "spec.ssh.port")
	k.match(k.file, s.IdentityFile, "spec.ssh.identityFile", "a path without control characters")
	k.jump(s.Jump, "spec.ssh.jump")
	if s.SudoPassword != nil {
		k.secret(*s.SudoPassword, "spec.ssh.sudoPassword")
	}
}

func (k checker) secret(s Secret, field string) {
	given := 0
	for _, set := range []bool{s.Env != "", s.File != "", s.Prompt, s.Descriptor != 0} {
		if set {
			given++
		}
	}
	if given != 1 {
		k.problem(field, "says where the secret is: exactly one of env, file, prompt, descriptor")
	}
	k.match(k.env, s.Env, field+".env", "the name of an environment variable, not the secret itself")
	k.match(k.file, s.File, field+".file", "a path without control characters")
	if d := s.Descriptor; d != 0 && (d < 3 || d > 1023) {
		k.problem(field+".descriptor", "%d is no descriptor for a secret (3 to 1023)", d)
	}
}

const (
	userRule = "letters, digits, '.', '_', '-', '@' and '+', beginning with a letter, a digit or '_'"
	hostRule = "an IP address, a DNS name or a Host of ssh_config; the user, the port and the protocol have no place in it"
)

func (k checker) port(p int, field string) {
	if _, given := k.at[field]; given && (p < 1 || p > 65535) && !k.failed(field) {
		k.problem(field, "%d is not a TCP port (1 to 65535)", p)
	}
}

// failed says whether a field already has a problem: a second one would only repeat it.
func (k checker) failed(field string) bool {
	for _, p := range k.problems {
		if p.Field == field {
			return true
		}
	}
	return false
}

func (k checker) host(h, field string) {
	if h == "" || isAddress(h) {
		return
	}
	k.match(k.patterns.host, h, field, hostRule)
}

// isAddress accepts IPv4 and IPv6, with the name of an interface as its zone.
func isAddress(h string) bool {
	a, err := netip.ParseAddr(h)
	return err == nil && (a.Zone() == "" || newPatterns().iface.MatchString(a.Zone()))
}

func (k checker) jump(chain, field string) {
	if chain == "" || chain == "none" {
		return
	}
	for _, hop := range strings.Split(chain, ",") {
		t, err := ParseTarget(hop)
		if err != nil {
			k.problem(field, "jump host %q: %v", hop, err)
			continue
		}
		if t.Host == "" {
			k.problem(field, "jump host %q: no host", hop)
		}
	}
}

func (k checker) kubernetes(s Kubernetes) {
	if s.Version != "" && !regexp.MustCompile(`^v1\.\d{1,2}\.\d{1,2}(-rc\d+)?\+k3s\d+$`).MatchString(s.Version) {
		k.problem("spec.kubernetes.version", "%q is not a k3s release; they look like v1.36.3+k3s1", s.Version)
	}
	for i, san := range s.TLSSANs {
		k.host(san, fmt.Sprintf("spec.kubernetes.tlsSANs[%d]", i))
	}
	k.endpoint(s.Endpoint)
	k.match(k.iface, s.Network.Interface, "spec.kubernetes.network.interface", "the name of a network interface, at most 15 characters")
	k.noSecrets(s.Config.Server, "spec.kubernetes.config.server")
	k.noSecrets(s.Config.Agent, "spec.kubernetes.config.agent")
	k.registries(s.Registries)
}

// endpoint is a host, or a host and a port as URLs have them.
func (k checker) endpoint(e string) {
	const field = "spec.kubernetes.endpoint"
	if e == "" || isAddress(e) {
		return
	}
	host, port, err := net.SplitHostPort(e)
	if err != nil {
		host = e
	} else if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		k.problem(field, "%q is not a TCP port (1 to 65535)", port)
	}
	k.host(host, field)
}

func (k checker) groups(groups []Group) {
	first := map[string]int{}
	for i, g := range groups {
		field := fmt.Sprintf("spec.groups[%d]", i)
		k.match(k.name, g.Name, field+".name", "lower case letters, digits and '-'")
		if b := g.Driver.Branch; b != "" && !regexp.MustCompile(`^[1-9][0-9]{2}$`).MatchString(b) {
			k.problem(field+".driver.branch", "%q is no driver branch; they look like \"580\"", b)
		}
		if j, twice := first[g.Name]; twice && g.Name != "" {
			k.problem(field+".name", "group %q stands here and in spec.groups[%d]", g.Name, j)
		}
		first[g.Name] = i
		k.match(k.env, strings.ReplaceAll(g.TerraformVariable, "-", "_"), field+".terraformVariable", "the name of a variable")
		k.sharing(g.Sharing, field+".sharing")
		k.marks(g, field)
		k.dataDisk(g.DataDisk, "", field+".dataDisk")
	}
	k.beside(groups)
}

func (k checker) gpu(g GPU) {
	k.match(k.version, g.Toolkit.Version, "spec.gpu.toolkit.version", "a package version such as 1.20.2-1")
	k.match(k.version, g.Operator.Version, "spec.gpu.operator.version", "a chart version such as v25.10.1")
	k.noSecrets(g.Operator.Values, "spec.gpu.operator.values")
}

func (k checker) dataDir(dir, field string) {
	if dir == "" {
		return
	}
	if !regexp.MustCompile(`^(/[A-Za-z0-9._@+-]+)+$`).MatchString(dir) || path.Clean(dir) != dir {
		k.problem(field, "%q is not an absolute path of plain letters", dir)
	}
}
