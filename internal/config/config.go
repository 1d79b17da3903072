// Package config reads gpuctl.yaml: what the user wants. It is strict (an
// unknown field is an error with its line, column and the nearest right name),
// tells all errors at once, and holds no secret in clear: secrets are named by
// reference only.
package config

// APIVersion and Kind are what the first two lines of gpuctl.yaml say.
const (
	APIVersion = "gpuctl.dev/v1alpha1"
	Kind       = "Cluster"
)

// Config is one gpuctl.yaml. Load and Parse return it checked and with defaults filled in.
//
// A field tagged gpuctl:"later" is part of the format and refused with "not
// supported yet" when it is given: nothing is ignored silently. A mapping with a
// field tagged gpuctl:"short" may be written as that field's value alone.
type Config struct {
	APIVersion string   `yaml:"apiVersion" jsonschema:"required,enum=gpuctl.dev/v1alpha1"`
	Kind       string   `yaml:"kind" jsonschema:"required,enum=Cluster"`
	Metadata   Metadata `yaml:"metadata" jsonschema:"required"`
	Spec       Spec     `yaml:"spec" jsonschema:"required"`
}

// Metadata names the cluster.
type Metadata struct {
	// Name names the cluster: local state, kubeconfig context. RFC 1123 label.
	Name string `yaml:"name" jsonschema:"required"`
}

// Spec is what the cluster should be. Everything but the machines has a default.
type Spec struct {
	// Set is the tested set of versions ("26.7"), or the path of a file of one's own, which is marked untested. Empty means the newest set of this gpuctl.
	Set string `yaml:"set,omitempty"`
	// SSH holds what is the same for every machine; a machine may say otherwise.
	SSH SSH `yaml:"ssh,omitempty"`
	// Kubernetes is the k3s half.
	Kubernetes Kubernetes `yaml:"kubernetes,omitempty"`
	// Provider is where the machines are rented ("lambda"); it serves hints only, such as what ends the bill. Names: gpuctl init --help.
	Provider string `yaml:"provider,omitempty"`
	// Groups are kinds of machines that share settings.
	Groups []Group `yaml:"groups,omitempty"`
	// GPU is the NVIDIA half: toolkit, operator, the runtime path.
	GPU GPU `yaml:"gpu,omitempty"`
	// Addons are Helm charts to install beside the GPU Operator.
	Addons []Addon `yaml:"addons,omitempty" gpuctl:"later"`
	// Machines are the rented machines.
	Machines []Machine `yaml:"machines,omitempty"`
	// MachinesFrom takes the machines from elsewhere instead.
	MachinesFrom *MachinesFrom `yaml:"machinesFrom,omitempty"`
	// Sources are mirrors of what is downloaded; empty means the upstream places.
	Sources Sources `yaml:"sources,omitempty"`
	// Proxy is the HTTP proxy the machines must use to reach the internet.
	Proxy Proxy `yaml:"proxy,omitempty"`
}

// SSH says how to reach the machines. Empty fields mean what ssh_config says.
type SSH struct {
	// User is the login name.
	User string `yaml:"user,omitempty"`
	// Port is the TCP port of sshd, 1 to 65535.
	Port int `yaml:"port,omitempty" jsonschema:"minimum=1,maximum=65535"`
	// IdentityFile is the path of a private key; relative paths start at gpuctl.yaml, ~ is the home directory.
	IdentityFile string `yaml:"identityFile,omitempty"`
	// Jump is a comma-separated chain of jump hosts, [user@]host[:port].
	Jump string `yaml:"jump,omitempty"`
	// HostKeys: accept-new pins an unknown host's key at the first contact, strict refuses it. A changed key is never accepted.
	HostKeys string `yaml:"hostKeys,omitempty" jsonschema:"enum=accept-new,enum=strict,default=accept-new"`
	// SudoPassword says where the password for sudo comes from, where one is needed.
	SudoPassword *Secret `yaml:"sudoPassword,omitempty"`
}

// Secret says where a secret is to be found. Exactly one field is set.
type Secret struct {
	// Env is the name of an environment variable.
	Env string `yaml:"env,omitempty"`
	// File is the path of a file; a trailing newline is not part of the secret.
	File string `yaml:"file,omitempty"`
	// Prompt asks on the terminal.
	Prompt bool `yaml:"prompt,omitempty"`
	// Descriptor is the number of an open file descriptor from which the secret is read to its end, once; 3 or more.
	Descriptor int `yaml:"descriptor,omitempty" jsonschema:"minimum=3"`

	// text is the secret itself, see Config.Resolved.
	text string
}

// Kubernetes is what k3s should be.
type Kubernetes struct {
	// Version is the k3s release ("v1.36.3+k3s1"); empty means the set's.
	Version string `yaml:"version,omitempty"`
	// Datastore is etcd (embedded, can grow to three or five servers) or sqlite. From sqlite to etcd is one way; back is refused.
	Datastore string `yaml:"datastore,omitempty" jsonschema:"enum=etcd,enum=sqlite,default=etcd"`
	// TLSSANs are further names and addresses in the API server's certificate.
	TLSSANs []string `yaml:"tlsSANs,omitempty"`
	// Endpoint is the external load balancer or virtual address before several servers, "name" or "name:port" (6443): agents join by it, kubeconfig names it and the API's certificates carry it. gpuctl does not make it.
	Endpoint string `yaml:"endpoint,omitempty"`
	// Network is the pod network.
	Network Network `yaml:"network,omitempty"`
	// Disable are packaged components of k3s to leave out.
	Disable []string `yaml:"disable,omitempty" jsonschema:"enum=coredns,enum=servicelb,enum=traefik,enum=local-storage,enum=metrics-server,enum=runtimes"`
	// Config are further k3s configuration keys, per role.
	Config K3sConfig `yaml:"config,omitempty"`
	// Registries is the content of k3s's registries.yaml. A secret is {env: NAME}, {file: PATH}, {prompt: true} or {descriptor: N}; such a reference in a tls path (ca_file, cert_file, key_file) lays its content on the machines.
	Registries map[string]any `yaml:"registries,omitempty"`
	// EmbeddedRegistry lets nodes fetch images from each other (k3s's embedded registry, Spegel); nodes reach each other on TCP 5001 and 6443 for it.
	EmbeddedRegistry bool `yaml:"embeddedRegistry,omitempty"`
	// Existing is a cluster that gpuctl did not make: gpuctl does the GPU half alone, and joins machines to it where they are named.
	Existing *Existing `yaml:"existing,omitempty"`
}

// K3sConfig are keys of k3s's own configuration file, as k3s spells them.
type K3sConfig struct {
	// Server goes to the servers.
	Server map[string]any `yaml:"server,omitempty"`
	// Agent goes to the agents.
	Agent map[string]any `yaml:"agent,omitempty"`
}

// Network says how pods on different machines reach each other.
type Network struct {
	// Backend is flannel's; auto takes vxlan between private addresses and wireguard-native where there are only public ones.
	Backend string `yaml:"backend,omitempty" jsonschema:"enum=auto,enum=vxlan,enum=wireguard-native,enum=host-gw,default=auto"`
	// Interface is the network interface between the machines; empty means found.
	Interface string `yaml:"interface,omitempty"`
	// UseAddress says which address of a machine the others use.
	UseAddress string `yaml:"useAddress,omitempty" jsonschema:"enum=auto,enum=private,enum=public,default=auto"`
	// Firewall: open adds rules for the cluster's machines, pods and services to an active ufw or firewalld; leave only reports what blocks.
	Firewall string `yaml:"firewall,omitempty" jsonschema:"enum=leave,enum=open,default=leave"`
}

// Existing says how to reach a cluster that is there already. Kubeconfig is for its
// API, Server and Token are for joining machines to a k3s; with both everything can
// be done and verified.
type Existing struct {
	// Kubeconfig is the path of its kubeconfig; relative paths start at gpuctl.yaml.
	Kubeconfig string `yaml:"kubeconfig,omitempty"`
	// Context is the kubeconfig's context; empty means its current one.
	Context string `yaml:"context,omitempty"`
	// Server is the URL of a k3s server ("https://10.0.0.5:6443") as the machines that join reach it.
	Server string `yaml:"server,omitempty"`
	// Token is k3s's agent token in its full form, K10<hash>::node:<secret>.
	Token *Secret `yaml:"token,omitempty"`
	// Group names the group whose sharing, labels and taints the cluster's GPU nodes get that are no machines of this file.
	Group string `yaml:"group,omitempty"`
	// TaintUnproven puts the taint gpuctl.dev/unproven on GPU nodes until their GPUs have passed the smoke test, and again when they fail it. Off, because nodes and operator are somebody else's.
	TaintUnproven bool `yaml:"taintUnproven,omitempty"`
}

// Group is a kind of machine: what its machines share.
type Group struct {
	// Name is what a machine's group field says.
	Name string `yaml:"name" jsonschema:"required"`
	// Driver is the NVIDIA kernel driver.
	Driver Driver `yaml:"driver,omitempty"`
	// Sharing splits GPUs between pods.
	Sharing *Sharing `yaml:"sharing,omitempty"`
	// Selector picks nodes of an existing cluster by their labels, all of which must be as said; the first group that fits has the node, before existing.group.
	Selector map[string]string `yaml:"selector,omitempty"`
	// Labels are put on the nodes, those that have joined already too; one that is taken out of the file leaves the nodes.
	Labels map[string]string `yaml:"labels,omitempty"`
	// Taints are put on the nodes, "key=value:NoSchedule" or PreferNoSchedule; the GPU Operator and the smoke test tolerate them.
	Taints []string `yaml:"taints,omitempty"`
	// DataDisk is a disk for k3s's data, on every machine of the group.
	DataDisk *DataDisk `yaml:"dataDisk,omitempty"`
	// Hourly is the price of one machine per hour, in any one currency; gpuctl cost adds it up.
	Hourly float64 `yaml:"hourly,omitempty"`
	// Spot marks machines that may be taken away at short notice: each gets a watcher that cordons and empties its node then. It asks the metadata service where spec.provider is aws, gcp or azure.
	Spot bool `yaml:"spot,omitempty"`
	// TerraformVariable is the variable that counts this group's machines; gpuctl scale sets it.
	TerraformVariable string `yaml:"terraformVariable,omitempty"`
}

// Driver says what to do about the NVIDIA kernel driver.
type Driver struct {
	// Mode: auto keeps a good driver and installs a package otherwise; keep only checks; package installs; operator leaves driver and Container Toolkit of these machines to the GPU Operator; none expects none.
	Mode string `yaml:"mode,omitempty" jsonschema:"enum=auto,enum=keep,enum=package,enum=operator,enum=none,default=auto"`
	// Branch is the driver branch ("580"); empty means the set's.
	Branch string `yaml:"branch,omitempty"`
	// Modules is the kernel module flavour; auto goes by GPU generation.
	Modules string `yaml:"modules,omitempty" jsonschema:"enum=auto,enum=open,enum=proprietary,default=auto"`
	// Reboot: never turns an action that needs a reboot into a finding.
	Reboot string `yaml:"reboot,omitempty" jsonschema:"enum=allow,enum=never,default=allow"`
}

// GPU is the NVIDIA half of the cluster.
type GPU struct {
	// Toolkit is the NVIDIA Container Toolkit on the machines.
	Toolkit Toolkit `yaml:"toolkit,omitempty"`
	// Operator is the GPU Operator in the cluster.
	Operator Operator `yaml:"operator,omitempty"`
	// RuntimePath is how pods get their GPUs; empty means the set's.
	RuntimePath string `yaml:"runtimePath,omitempty" jsonschema:"enum=cdi,enum=runtimeClass"`
}

// Toolkit is the NVIDIA Container Toolkit.
type Toolkit struct {
	// Version is the package version ("1.20.2-1"); empty means the set's.
	Version string `yaml:"version,omitempty"`
}

// Operator is the GPU Operator's Helm release.
type Operator struct {
	// Enabled is on unless said otherwise.
	Enabled *bool `yaml:"enabled,omitempty" jsonschema:"default=true"`
	// Version is the chart version; empty means the set's.
	Version string `yaml:"version,omitempty"`
	// Values are further Helm values; they win over what gpuctl sets.
	Values map[string]any `yaml:"values,omitempty"`
}

// Addon is a Helm chart.
type Addon struct {
	// Name is the chart's name in the set.
	Name string `yaml:"name" jsonschema:"required"`
	// Version is the chart version; empty means the set's.
	Version string `yaml:"version,omitempty"`
	// Values are Helm values.
	Values map[string]any `yaml:"values,omitempty"`
}

// Machine is one rented machine. Empty fields mean what spec.ssh says, then ssh_config.
type Machine struct {
	// Name is the node's name in Kubernetes; empty means made from host.
	Name string `yaml:"name,omitempty"`
	// Role is server (control plane, runs workloads too) or agent.
	Role string `yaml:"role,omitempty" jsonschema:"enum=server,enum=agent"`
	// Group names the group whose settings apply.
	Group string `yaml:"group,omitempty"`
	// Host is an address, a DNS name or a Host of ssh_config.
	Host string `yaml:"host" jsonschema:"required"`
	// Port is the TCP port of sshd, 1 to 65535.
	Port int `yaml:"port,omitempty" jsonschema:"minimum=1,maximum=65535"`
	// User is the login name.
	User string `yaml:"user,omitempty"`
	// IdentityFile is the path of a private key.
	IdentityFile string `yaml:"identityFile,omitempty"`
	// Jump is a comma-separated chain of jump hosts, [user@]host[:port].
	Jump string `yaml:"jump,omitempty"`
	// HostKey pins the host key ("ssh-ed25519 AAAA...").
	HostKey string `yaml:"hostKey,omitempty"`
	// PrivateAddress is the address the other machines use; empty means found.
	PrivateAddress string `yaml:"privateAddress,omitempty"`
	// DataDir is where k3s keeps its data; empty means /var/lib/rancher/k3s.
	DataDir string `yaml:"dataDir,omitempty"`
	// DataDisk is a disk for that data; empty means that of the group, else none.
	DataDisk *DataDisk `yaml:"dataDisk,omitempty"`
	// GPUs is how many GPUs were promised; empty means not said.
	GPUs *int `yaml:"gpus,omitempty" jsonschema:"minimum=0,maximum=1024"`
	// GPUModel is a part of the promised model's name ("H100").
	GPUModel string `yaml:"gpuModel,omitempty"`
}

// MachinesFrom takes the machines from another tool.
type MachinesFrom struct {
	// Terraform reads an output of a Terraform or OpenTofu directory.
	Terraform *Terraform `yaml:"terraform,omitempty"`
}

// Terraform names an output that lists machines.
type Terraform struct {
	// Dir is the root module's directory; relative paths start at gpuctl.yaml.
	Dir string `yaml:"dir" jsonschema:"required"`
	// Output is the output's name; empty means gpuctl.
	Output string `yaml:"output,omitempty" jsonschema:"default=gpuctl"`
	// Binary is the program to run, a name in the PATH or a path; empty means terraform, or tofu where there is no terraform.
	Binary string `yaml:"binary,omitempty"`
	// Variables are input variables for gpuctl provision and gpuctl scale. A secret is {env: NAME} or {file: PATH}.
	Variables map[string]any `yaml:"variables,omitempty"`
}
