package bootstrap

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const bundleReadme = `A support bundle of gpuctl doctor.

report.json           findings, causes before consequences
machines/NAME.json    what the probe saw of a machine
machines/NAME.log     the end of the log of k3s
cluster.json          nodes, pods, events, daemonsets: states and reasons

Addresses, host names and users are pseudonyms, the same ones in every bundle of
this cluster; only the computer that made the bundle can tell what they stand for.
Secrets, environment variables, arguments and contents of files were never in it.
Names of machines, namespaces and pods are as they are.
`

// Bundle writes what the doctor saw as tar.gz for other people's eyes. It holds
// only what is named here; all text is scrubbed on its way in.
func (e *Engine) Bundle(w io.Writer, r DoctorResult) error {
	scrub := e.scrubber(r.seen)
	zip := gzip.NewWriter(w)
	archive := tar.NewWriter(zip)
	files := map[string]any{"report.json": r, "cluster.json": viewOfCluster(r.seen)}
	texts := map[string]string{"README.txt": bundleReadme}
	for name, f := range r.seen.sight.facts {
		// Who logged in and what tells the machine from all others is nobody's business.
		f.System.Value.Login, f.System.Value.MachineID, f.System.Value.ProductUUID, f.System.Value.BootID = "", "", "", ""
		files["machines/"+name+".json"] = f
	}
	for name, lines := range r.seen.journals {
		texts["machines/"+name+".log"] = strings.Join(lines, "\n") + "\n"
	}
	for name, v := range files {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return fmt.Errorf("writing %s of the bundle: %w", name, err)
		}
		texts[name] = string(data) + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		if name != "README.txt" {
			text = scrub.scrub(text)
		}
		h := tar.Header{Name: "gpuctl-support/" + scrub.scrub(name), Mode: 0o600, Size: int64(len(text)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(&h); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
		if _, err := io.WriteString(archive, text); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

// scrubber knows the cluster's secrets and the names that must not be told.
func (e *Engine) scrubber(p patient) scrubber {
	secrets := []string{e.settings.Key, e.settings.Owner}
	if c := p.sight.credentials; c != nil {
		secrets = append(secrets, c.AgentToken, c.ServerToken)
	}
	s := newScrubber(e.settings.Owner, secrets, map[string]string{})
	// Names of systems are users of their images too; there they say nothing.
	harmless := []string{"", "root", "ubuntu", "debian", "localhost"}
	name := func(kind, value string) {
		if !slices.Contains(harmless, value) {
			s.names[value] = s.pseudonym(kind, value)
		}
	}
	for _, m := range e.settings.Inventory.Machines {
		name("user", m.User)
		if s.address(m.Host) == m.Host && m.Host != m.Name {
			name("host", m.Host)
		}
		f := p.sight.facts[m.Name]
		name("user", f.System.Value.Login)
		if f.System.Value.Hostname != m.Name {
			name("host", f.System.Value.Hostname)
		}
	}
	return s
}

// clusterView is what the bundle tells of the API's objects.
type clusterView struct {
	Version string      `json:"version"`
	Nodes   []nodeState `json:"nodes"`
	Pods    []podState  `json:"pods"`
	Events  []eventLine `json:"events"`
	Sets    []setState  `json:"daemonSets"`
	Policy  any         `json:"clusterPolicies"`
}

type nodeState struct {
	Name        string                 `json:"name"`
	Labels      map[string]string      `json:"labels"`
	Taints      []corev1.Taint         `json:"taints,omitempty"`
	Cordoned    bool                   `json:"cordoned,omitempty"`
	Conditions  []corev1.NodeCondition `json:"conditions"`
	Capacity    corev1.ResourceList    `json:"capacity"`
	Allocatable corev1.ResourceList    `json:"allocatable"`
	Info        corev1.NodeSystemInfo  `json:"info"`
}

type podState struct {
	Namespace  string                   `json:"namespace"`
	Name       string                   `json:"name"`
	Node       string                   `json:"node,omitempty"`
	Phase      corev1.PodPhase          `json:"phase"`
	Reason     string                   `json:"reason,omitempty"`
	Message    string                   `json:"message,omitempty"`
	Conditions []corev1.PodCondition    `json:"conditions,omitempty"`
	Containers []corev1.ContainerStatus `json:"containers,omitempty"`
}

type eventLine struct {
	Object  string    `json:"object"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
	Last    time.Time `json:"last"`
}

type setState struct {
	Name    string `json:"name"`
	Desired int32  `json:"desired"`
	Ready   int32  `json:"ready"`
}

// viewOfCluster takes states and reasons, and nothing of what users wrote into pods.
func viewOfCluster(p patient) clusterView {
	o := p.objects
	v := clusterView{Version: o.Version, Policy: o.Policies}
	for _, n := range o.Nodes {
		info := n.Status.NodeInfo
		info.MachineID, info.SystemUUID, info.BootID = "", "", ""
		v.Nodes = append(v.Nodes, nodeState{
			Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Cordoned: n.Spec.Unschedulable, Conditions: n.Status.Conditions,
			Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable, Info: info,
		})
	}
	for _, pod := range o.Pods {
		v.Pods = append(v.Pods, podState{
			Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Phase: pod.Status.Phase, Reason: pod.Status.Reason,
			Message: pod.Status.Message, Conditions: pod.Status.Conditions,
			Containers: append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...),
		})
	}
	for _, ev := range o.Events {
		of := ev.InvolvedObject
		v.Events = append(v.Events, eventLine{
			Object: of.Kind + "/" + of.Namespace + "/" + of.Name, Type: ev.Type, Reason: ev.Reason, Message: ev.Message, Count: ev.Count,
			Last: ev.LastTimestamp.Time,
		})
	}
	for _, d := range o.DaemonSets {
		v.Sets = append(v.Sets, setState{Name: d.Namespace + "/" + d.Name, Desired: d.Status.DesiredNumberScheduled, Ready: d.Status.NumberReady})
	}
	return v
}
