// Package inventory names the machines of a cluster. It is all that
// provisioning and bootstrapping share: one makes it, the other consumes it.
package inventory

// Role is what a machine does in the cluster.
type Role string

const (
	// Server runs the control plane (k3s server). A server runs workloads too.
	Server Role = "server"
	// Agent runs workloads only (k3s agent).
	Agent Role = "agent"
)

// Machine is one rented machine as its owner describes it. Zero values mean
// "not said": the SSH configuration of the user or the tool's defaults decide.
type Machine struct {
	// Name is the node name in Kubernetes: RFC 1123 label, unique.
	Name string
	// Role is Server or Agent.
	Role Role
	// Group is the name of the group whose settings apply; may be empty.
	Group string
	// Host is the address or ssh_config name to connect to.
	Host string
	// Port is the TCP port of sshd; 0 means what ssh_config says, else 22.
	Port int
	// User is the login name; empty means what ssh_config says.
	User string
	// IdentityFile is the path of a private key; empty means ssh_config and agent.
	IdentityFile string
	// Jump is a comma-separated ProxyJump chain ([user@]host[:port]); empty means ssh_config.
	Jump string
	// HostKey pins the machine's host key, in authorized_keys form ("ssh-ed25519 AAAA...").
	HostKey string
	// PrivateAddress is the address other machines should use; empty means observed.
	PrivateAddress string
	// DataDir is where k3s keeps its data; empty means /var/lib/rancher/k3s.
	DataDir string
	// DataDisk is a disk to keep that data on; nil means none.
	DataDisk *DataDisk
	// GPUs is how many GPUs the owner was promised; nil means not said.
	GPUs *int
	// GPUModel is a substring of the model the owner was promised; empty means not said.
	GPUModel string
}

// DataDisk is a disk of a machine that holds k3s's data.
type DataDisk struct {
	// Device is its path, best one below /dev/disk/by-id.
	Device string
	// Format allows making a file system where the disk is empty.
	Format bool
	// Mount is the folder it is mounted on.
	Mount string
}

// Inventory is the machines of one cluster, in the order the owner gave them.
type Inventory struct {
	// Cluster is the cluster's name; it names local state and the kubeconfig context.
	Cluster  string
	Machines []Machine
}

// Servers returns the machines with role Server, in order.
func (inv Inventory) Servers() []Machine { return inv.withRole(Server) }

// Agents returns the machines with role Agent, in order.
func (inv Inventory) Agents() []Machine { return inv.withRole(Agent) }

// Find returns the machine of that name.
func (inv Inventory) Find(name string) (Machine, bool) {
	for _, m := range inv.Machines {
		if m.Name == name {
			return m, true
		}
	}
	return Machine{}, false
}

func (inv Inventory) withRole(r Role) []Machine {
	var out []Machine
	for _, m := range inv.Machines {
		if m.Role == r {
			out = append(out, m)
		}
	}
	return out
}
