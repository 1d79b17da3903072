package host

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/gpuctl/gpuctl/bootstrap/remote"
	"github.com/gpuctl/gpuctl/bootstrap/remote/remotetest"
)

func spotWant() Want {
	w := agent()
	w.Spot = &Spot{Provider: "aws", Seconds: 120, After: "gpu-1/k3s"}
	return w
}

// watched is a machine that has what spotWant wants.
func watched() Facts {
	w := spotWant()
	f := done(w, fit())
	f.Files.Value[PathSpotScript] = File{Hash: KeyedHash(w.Key, spotWatchScript)}
	f.Files.Value[PathSpotUnit] = File{Hash: KeyedHash(w.Key, SpotUnitFile(w))}
	f.K3s = Known(K3s{Units: map[string]Unit{SpotUnit: {Active: "active"}}})
	return f
}

func TestSpotPlan(t *testing.T) {
	stopped, other := watched(), spotWant()
	stopped.K3s.Value.Units[SpotUnit] = Unit{Active: "failed"}
	other.Spot.Provider = "gcp"
	unsure := watched()
	unsure.K3s = Unknown[K3s]("timeout")
	for name, c := range map[string]struct {
		want Want
		seen Facts
		pend string
	}{
		"not spot":              {agent(), done(agent(), fit()), ""},
		"watched":               {spotWant(), watched(), ""},
		"k3s could not be seen": {spotWant(), unsure, ""},
		"fresh":                 {spotWant(), done(spotWant(), fit()), "gpu-1/host-spot: " + PathSpotScript + " is absent; " + PathSpotUnit + " is absent"},
		"stopped":               {spotWant(), stopped, "gpu-1/host-spot: gpuctl-spot.service is failed"},
		"another provider":      {other, watched(), "gpu-1/host-spot: " + PathSpotUnit + " differs"},
		"spot no more":          {agent(), watched(), "gpu-1/host-spot: its group is not spot any more"},
	} {
		if got := reasons(Plan(c.want, c.seen, nil)); got != c.pend {
			t.Errorf("%s: pending\n%s\nwant\n%s", name, got, c.pend)
		}
	}
}

func TestSpotUnitLeavesPodsHalfOfTheNotice(t *testing.T) {
	for provider, want := range map[string]string{
		"aws": "spot-watch aws gpu-1 /var/lib/rancher/k3s 30 5\n", "gcp": "spot-watch gcp gpu-1 /var/lib/rancher/k3s 15 2\n", "": "spot-watch - gpu-1 /var/lib/rancher/k3s 15 2\n",
	} {
		w := agent()
		w.Spot = &Spot{Provider: provider, Seconds: map[string]int{"aws": 120, "gcp": 30}[provider]}
		if unit := string(SpotUnitFile(w)); !strings.Contains(unit, want) {
			t.Errorf("%q: %s", provider, unit)
		}
	}
}

func TestSpotIsLaidAndTakenOff(t *testing.T) {
	for _, c := range []struct {
		want   Want
		seen   Facts
		length string
		input  string
	}{
		{spotWant(), done(spotWant(), fit()), strconv.Itoa(len(spotWatchScript)), string(spotWatchScript) + string(SpotUnitFile(spotWant()))},
		{agent(), watched(), "0", ""},
	} {
		on := remotetest.New(t)
		on.Expect("set the watcher of spot notices").Do(func(_ context.Context, cmd remote.Cmd, input []byte) (remote.Result, error) {
			if !cmd.Sudo || cmd.Args[0] != c.length || string(input) != c.input {
				t.Errorf("%v with %q", cmd.Args, input)
			}
			return remote.Result{}, nil
		})
		for _, a := range Plan(c.want, c.seen, on) {
			if err := a.Apply(t.Context(), say); err != nil {
				t.Error(err)
			}
		}
	}
}
