package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Sources are mirrors, for machines without a way to the upstream places.
type Sources struct {
	// K3s replaces https://github.com/k3s-io/k3s/releases/download.
	K3s Source `yaml:"k3s,omitempty"`
	// Packages replaces https://nvidia.github.io/libnvidia-container; below cuda/repos it holds what https://developer.download.nvidia.com/compute/cuda/repos does, for drivers.
	Packages Source `yaml:"packages,omitempty"`
	// Charts replaces https://helm.ngc.nvidia.com/nvidia. A registry begins with oci://.
	Charts Source `yaml:"charts,omitempty"`
	// Images is a registry that mirrors every upstream registry under its host name.
	Images Source `yaml:"images,omitempty"`
	// Bundle is the path of an offline bundle (gpuctl bundle create) that takes the place of all others.
	Bundle string `yaml:"bundle,omitempty"`
}

// Source is a mirror: its URL alone, or with what it takes to be let in.
type Source struct {
	// URL is where it is.
	URL string `yaml:"url" jsonschema:"required" gpuctl:"short"`
	// Username logs in, with password.
	Username string `yaml:"username,omitempty"`
	// Password says where the password is.
	Password *Secret `yaml:"password,omitempty"`
	// Token says where a bearer token is, instead of a user; only for k3s and charts.
	Token *Secret `yaml:"token,omitempty"`
	// CAFile is the path of the certificates (PEM) by which the mirror is known where no public authority knows it. Only this mirror is trusted by them.
	CAFile string `yaml:"caFile,omitempty"`

	ca string
}

// CA is the content of CAFile, once Config.Resolved has read it.
func (s Source) CA() string { return s.ca }

// Proxy is the HTTP proxy through which the machines download: k3s, its containerd, packages.
type Proxy struct {
	// HTTP is the proxy for http:// URLs.
	HTTP string `yaml:"http,omitempty"`
	// HTTPS is the proxy for https:// URLs.
	HTTPS string `yaml:"https,omitempty"`
	// No are hosts and networks reached without it, comma separated.
	No string `yaml:"no,omitempty"`
	// Username logs in at the proxy, with password.
	Username string `yaml:"username,omitempty"`
	// Password says where the proxy's password is.
	Password *Secret `yaml:"password,omitempty"`
}

// named is a source with its key.
type named struct {
	key string
	*Source
}

func (s *Sources) all() []named {
	return []named{{"k3s", &s.K3s}, {"packages", &s.Packages}, {"charts", &s.Charts}, {"images", &s.Images}}
}

func (k checker) sources(s Sources) {
	k.match(k.file, s.Bundle, "spec.sources.bundle", "a path without control characters")
	for _, src := range s.all() {
		at := "spec.sources." + src.key
		if _, long := k.at[at+".url"]; long {
			k.sourceURL(src, at+".url")
		} else {
			k.sourceURL(src, at)
		}
		k.login(*src.Source, at)
		if src.Token != nil && (src.key == "packages" || src.key == "images") {
			k.problem(at+".token", "apt and the registries of k3s take a user and a password; registries often take a token as the password")
		}
		k.match(k.file, src.CAFile, at+".caFile", "a path without control characters")
		if plain := strings.HasPrefix(src.URL, "http://"); plain && (src.Password != nil || src.Token != nil) {
			k.problem(at, "would send the secret in clear: the URL must begin with https://")
		} else if plain && src.CAFile != "" {
			k.problem(at+".caFile", "means nothing for http://")
		}
	}
}

func (k checker) sourceURL(s named, at string) {
	if s.URL == "" {
		return
	}
	u, err := url.Parse(s.URL)
	switch {
	case err == nil && s.key == "charts" && u.Scheme == "oci" && u.Host != "" && u.User == nil:
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		k.problem(at, "must be a http:// or https:// URL")
		return
	case u.User != nil:
		k.problem(at, "holds a user or a password; secrets do not stand in this file")
		return
	}
	if strings.ContainsAny(s.URL, "'\"\\`$ \t\n") {
		k.problem(at, "holds a quote, a space or a '$'")
	}
}

// login checks a user and where the secrets are.
func (k checker) login(s Source, at string) {
	switch {
	case s.Token != nil && (s.Username != "" || s.Password != nil):
		k.problem(at, "has a token beside a user; give one of the two")
	case s.Username != "" && s.Password == nil:
		k.problem(at+".username", "has no password; say where it is: {env: NAME} or {file: PATH}")
	case s.Username == "" && s.Password != nil:
		k.problem(at+".password", "has no username")
	}
	k.userName(s.Username, at+".username")
	for name, secret := range map[string]*Secret{"password": s.Password, "token": s.Token} {
		if secret != nil {
			k.secret(*secret, at+"."+name)
		}
	}
}

// userName: HTTP's basic authentication ends the user at a colon, apt at a space.
func (k checker) userName(name, at string) {
	if name != "" && !regexp.MustCompile(`^[^\s:[:cntrl:]]+$`).MatchString(name) {
		k.problem(at, "%q is no user: no spaces, no colon", name)
	}
}

func (k checker) proxy(p Proxy) {
	for name, value := range map[string]string{"http": p.HTTP, "https": p.HTTPS} {
		if value == "" {
			continue
		}
		at := "spec.proxy." + name
		u, err := url.Parse(value)
		switch {
		case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
			k.problem(at, "must be a http:// or https:// URL, such as http://10.0.0.1:3128")
		case u.User != nil:
			k.problem(at, "holds a user or a password; give spec.proxy.username, and say where the password is in spec.proxy.password")
		case strings.ContainsAny(value, "'\"\\`$ \t\n"):
			k.problem(at, "holds a quote, a space or a '$'")
		}
	}
	if p.No != "" && !regexp.MustCompile(`^[A-Za-z0-9.,:/*_\[\]-]+$`).MatchString(p.No) {
		k.problem("spec.proxy.no", "%q is no list of hosts and networks separated by commas, without spaces", p.No)
	}
	if p.No != "" && p.HTTP == "" && p.HTTPS == "" {
		k.problem("spec.proxy.no", "stands without http and https")
	}
	k.login(Source{Username: p.Username, Password: p.Password}, "spec.proxy")
	if p.Username != "" && p.HTTP == "" && p.HTTPS == "" {
		k.problem("spec.proxy.username", "stands without http and https")
	}
}

// With returns a proxy's URL with user and password in it, for the environment
// of programs that take it no other way. A proxy without a user stays as it is.
func (p Proxy) With(proxy string) string {
	u, err := url.Parse(proxy)
	if proxy == "" || err != nil || p.Username == "" {
		return proxy
	}
	// Letters that mean something to a shell or to systemd go as %XX too.
	u.User = nil
	scheme, rest, _ := strings.Cut(u.String(), "://")
	return scheme + "://" + escape(p.Username) + ":" + escape(p.Password.Text()) + "@" + rest
}

func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
