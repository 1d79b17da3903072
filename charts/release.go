package charts

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// Release is a Helm release as it should be.
type Release struct {
	Name      string
	Namespace string
	Chart     Chart
	Values    map[string]any
	// Adopt: a release of the same chart that somebody else made is kept instead of
	// installing one, see Adopt. Its own version and values stay but for what Asked changes.
	Adopt bool
	// Asked is what adoption may change.
	Asked Asked
	// Adopted says that this is such a release; only Adopt sets it.
	Adopted bool
	// Owner names who makes the change (a cluster's state directory, not a run): a pending
	// record of the same owner is one's own that was cut off, for only one run at a time works
	// on a cluster. It must be a valid label value; empty means nobody.
	Owner string
	// Limit bounds the whole of Ensure; 0 means 15 minutes.
	Limit time.Duration
	// Alive is how long somebody else's pending record counts as a running operation;
	// 0 means 10 minutes, twice Helm's own default time-out.
	Alive time.Duration
}

// Chart names a chart.
type Chart struct {
	Name string
	// Version is exact: v26.7.0.
	Version string
	// Repository is an http(s) URL with an index.yaml, an oci:// URL, or a local directory or archive.
	Repository string
	// SHA256 of the archive, in lower-case hex; empty trusts the repository's index.
	SHA256 string
}

// Phase is what a release's newest record says.
type Phase string

const (
	Absent       Phase = "absent"
	Deployed     Phase = "deployed"
	Failed       Phase = "failed"
	Pending      Phase = "pending"
	Uninstalling Phase = "uninstalling"
)

// State is a release as it is.
type State struct {
	Phase Phase `json:"phase"`
	// Status is Helm's own word: "pending-upgrade".
	Status   string `json:"status,omitempty"`
	Revision int    `json:"revision,omitempty"`
	// Version is the chart's version, ValuesHash the fingerprint of the values the user of Helm gave.
	Version    string `json:"version,omitempty"`
	ValuesHash string `json:"valuesHash,omitempty"`
	// Since is when the newest record was written.
	Since time.Time `json:"since,omitzero"`
	// Owner is the Owner of the release that wrote the newest record.
	Owner string `json:"owner,omitempty"`
	// LastGood is the newest revision that is or was deployed, 0 if none.
	LastGood int `json:"lastGood,omitempty"`
	// Adopted says that gpuctl changed the release as one that is somebody else's.
	Adopted bool `json:"adopted,omitempty"`
	// Values are what the newest record's user of Helm gave; GoodVersion and GoodValues are
	// those of LastGood. They may hold secrets: print them by Diff only.
	Values      map[string]any `json:"-"`
	GoodVersion string         `json:"-"`
	GoodValues  map[string]any `json:"-"`
	// Other is the state of the one release in Foreign, nil where there is none or more than one.
	Other *State `json:"-"`
	// Foreign are other releases of the same chart, in any namespace and under any name.
	Foreign []Foreign `json:"foreign,omitempty"`
}

// Foreign is a release of the same chart that is not the wanted one.
type Foreign struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	Status    string `json:"status"`
}

func (f Foreign) String() string {
	return fmt.Sprintf("%s/%s (%s, %s)", f.Namespace, f.Name, f.Version, f.Status)
}

// ForeignError says that the chart is installed under another name or in another
// namespace, and was not adopted: two operators fight over the same nodes.
type ForeignError struct {
	Chart string
	Found []Foreign
}

func (e *ForeignError) Error() string {
	var all []string
	for _, f := range e.Found {
		all = append(all, f.String())
	}
	return fmt.Sprintf("chart %s is already installed as %s", e.Chart, strings.Join(all, ", "))
}

// ownerLabel keeps Release.Owner on Helm's records; adoptedLabel marks those of a
// release that gpuctl only changed.
const (
	ownerLabel   = "gpuctl.dev/owner"
	adoptedLabel = "gpuctl.dev/adopted"
)

// observe reads the records of a release and of its chart's other releases, all
// with one question: a record is long and holds the whole chart.
func observe(everywhere *action.Configuration, rel Release) (State, error) {
	all, err := everywhere.Releases.ListReleases()
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return State{}, fmt.Errorf("listing releases: %w", err)
	}
	state := State{Phase: Absent}
	if history := historyOf(all, rel.Namespace, rel.Name); len(history) > 0 {
		if state, err = stateOf(history); err != nil {
			return State{}, err
		}
	}
	if state.Foreign = foreign(all, rel); len(state.Foreign) == 1 {
		other, err := stateOf(historyOf(all, state.Foreign[0].Namespace, state.Foreign[0].Name))
		if err != nil {
			return State{}, err
		}
		state.Other = &other
	}
	return state, nil
}

func historyOf(all []*release.Release, namespace, name string) []*release.Release {
	var history []*release.Release
	for _, r := range all {
		if r.Name == name && r.Namespace == namespace {
			history = append(history, r)
		}
	}
	return history
}

func stateOf(history []*release.Release) (State, error) {
	sort.Slice(history, func(i, j int) bool { return history[i].Version < history[j].Version })
	last := history[len(history)-1]
	hash, err := HashValues(last.Config)
	if err != nil {
		return State{}, err
	}
	state := State{Revision: last.Version, ValuesHash: hash, Owner: last.Labels[ownerLabel], Values: last.Config, Version: chartVersion(last)}
	state.Adopted = last.Labels[adoptedLabel] != ""
	if last.Info != nil {
		state.Status, state.Since = last.Info.Status.String(), last.Info.LastDeployed.Time
		state.Phase = phaseOf(last.Info.Status)
	}
	for _, r := range history {
		if r.Info != nil && (r.Info.Status == release.StatusDeployed || r.Info.Status == release.StatusSuperseded) {
			state.LastGood, state.GoodVersion, state.GoodValues = r.Version, chartVersion(r), r.Config
		}
	}
	return state, nil
}

func chartVersion(r *release.Release) string {
	if r.Chart == nil || r.Chart.Metadata == nil {
		return ""
	}
	return r.Chart.Metadata.Version
}

func phaseOf(s release.Status) Phase {
	switch s {
	case release.StatusDeployed:
		return Deployed
	case release.StatusPendingInstall, release.StatusPendingUpgrade, release.StatusPendingRollback:
		return Pending
	case release.StatusUninstalling, release.StatusUninstalled:
		return Uninstalling
	}
	return Failed
}

// foreign returns the newest record of every other release of the chart that is not gone.
func foreign(all []*release.Release, rel Release) []Foreign {
	newest := map[string]*release.Release{}
	for _, r := range all {
		if r.Chart == nil || r.Chart.Metadata == nil || r.Chart.Metadata.Name != rel.Chart.Name {
			continue
		}
		if r.Name == rel.Name && r.Namespace == rel.Namespace {
			continue
		}
		key := r.Namespace + "/" + r.Name
		if was := newest[key]; was == nil || was.Version < r.Version {
			newest[key] = r
		}
	}
	var found []Foreign
	for _, r := range newest {
		if r.Info == nil || r.Info.Status == release.StatusUninstalled {
			continue
		}
		found = append(found, Foreign{r.Namespace, r.Name, r.Chart.Metadata.Version, r.Info.Status.String()})
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}
