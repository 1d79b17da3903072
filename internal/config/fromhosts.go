package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/gpuctl/gpuctl/internal/providers"
)

// HostOptions are what a command line may say about hosts beside their names.
type HostOptions struct {
	// Cluster is the cluster's name; empty means gpu.
	Cluster string
	// Set is the set of versions; empty means the newest.
	Set string
	// Provider is where the machines are rented; its first login becomes spec.ssh.user.
	Provider string
	// GPUs is how many GPUs each machine has by promise; 0 means not said.
	GPUs int
	// TerraformDir is a root module to take the machines from, TerraformOutput its
	// output's name where that is not gpuctl.
	TerraformDir    string
	TerraformOutput string
	// Jump, IdentityFile and SudoPasswordFile go to spec.ssh.
	Jump             string
	IdentityFile     string
	SudoPasswordFile string
}

type hostsView struct {
	HostOptions
	// User is the provider's first login, empty where the hosts name their own.
	User     string
	Machines []Machine
}

// FromHosts writes a gpuctl.yaml for hosts as a user types them (see
// ParseTarget). The first is the server, the others are agents: the order on
// the command line is the user's choice. The result is checked by Parse.
func FromHosts(hosts []string, o HostOptions) ([]byte, error) {
	if (len(hosts) == 0) == (o.TerraformDir == "") {
		return nil, errors.New("give hosts, or a Terraform directory")
	}
	o.Cluster = or(o.Cluster, "gpu")
	view := hostsView{HostOptions: o}
	if p, ok := providers.Find(o.Provider); ok && !slices.ContainsFunc(hosts, namesUser) {
		view.User = p.User
	}
	taken := map[string]bool{}
	for i, h := range hosts {
		t, err := ParseTarget(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h, err)
		}
		m := Machine{Host: t.Host, User: t.User, Port: t.Port, Role: "agent"}
		if i == 0 {
			m.Role = "server"
		}
		m.Name = hostsName(t.Host, i, taken)
		taken[m.Name] = true
		view.Machines = append(view.Machines, m)
	}
	var out bytes.Buffer
	if err := hostsTemplate().Execute(&out, view); err != nil {
		return nil, fmt.Errorf("writing gpuctl.yaml: %w", err)
	}
	if _, err := Parse(out.Bytes(), "gpuctl.yaml"); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func namesUser(host string) bool { return strings.Contains(host, "@") }

// hostsName is the first label of a DNS name or alias, and node-1, node-2, ...
// for addresses, which say nothing and may change.
func hostsName(host string, i int, taken map[string]bool) string {
	numbered := "node-" + strconv.Itoa(i+1)
	if isAddress(host) {
		return numbered
	}
	first, _, _ := strings.Cut(host, ".")
	for _, name := range []string{NodeName(first), NodeName(host)} {
		if name != "" && !taken[name] {
			return name
		}
	}
	return numbered
}

// ErrConfigDiffers says that a file is there already and says something else.
var ErrConfigDiffers = errors.New("the file exists and says something else")

// WriteNew writes data to path, mode 0644, unless the file is there: then the
// same content is fine and any other is ErrConfigDiffers. It never overwrites.
func WriteNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		old, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if !bytes.Equal(old, data) {
			return fmt.Errorf("writing %s: %w", path, ErrConfigDiffers)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func hostsTemplate() *template.Template {
	return template.Must(template.New("gpuctl.yaml").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(hostsText))
}

const hostsText = `# A GPU cluster, as gpuctl should make it. Change it and run "gpuctl apply".
# Every field: gpuctl schema
apiVersion: gpuctl.dev/v1alpha1
kind: Cluster
metadata:
  name: {{.Cluster}}
spec:
{{- if .Set}}
  set: {{quote .Set}}
{{- else}}
  # set: "26.7"                # tested set of versions; the newest without this line
{{- end}}
{{- if .Provider}}
  provider: {{.Provider}}
{{- end}}
{{- if or .Jump .IdentityFile .SudoPasswordFile .User}}
  ssh:
{{- if .User}}
    user: {{.User}}               # this provider's first login
{{- end}}
{{- if .IdentityFile}}
    identityFile: {{quote .IdentityFile}}
{{- end}}
{{- if .Jump}}
    jump: {{quote .Jump}}
{{- end}}
{{- if .SudoPasswordFile}}
    sudoPassword: {file: {{quote .SudoPasswordFile}}}
{{- end}}
{{- end}}
{{- if .TerraformDir}}
  machinesFrom:
    terraform:
      dir: {{quote .TerraformDir}}
{{- if .TerraformOutput}}
      output: {{quote .TerraformOutput}}
{{- end}}
      # variables: {gpus: 2}   # for gpuctl provision and gpuctl scale
{{- else}}
  machines:
{{- range .Machines}}
    - name: {{quote .Name}}
      role: {{.Role}}{{if eq .Role "server"}}           # control plane; runs workloads too{{end}}
      host: {{quote .Host}}
{{- if .User}}
      user: {{quote .User}}
{{- end}}
{{- if .Port}}
      port: {{.Port}}
{{- end}}
{{- if $.GPUs}}
      gpus: {{$.GPUs}}
{{- end}}
{{- end}}
{{- if not .GPUs}}
      # gpus: 8                # what was promised; fewer stops the run before any change
{{- end}}
{{- end}}
`
