package providers

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFactsAreWellFormed(t *testing.T) {
	name, user := regexp.MustCompile(`^[a-z][a-z0-9-]*$`), regexp.MustCompile(`^[a-z]*$`)
	seen := map[string]bool{}
	for _, p := range All() {
		if !name.MatchString(p.Name) || seen[p.Name] || p.Title == "" || p.Unit == "" || !user.MatchString(p.User) {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
		if (p.Spot.Seconds > 0) != (p.Spot.How != "") {
			t.Errorf("%s: a notice needs both its way and its time: %+v", p.Name, p.Spot)
		}
		if p.Stop.Command != "" && (p.Stop.Ends == "" || !strings.Contains(p.Stop.Command, "NAME")) {
			t.Errorf("%s: %+v", p.Name, p.Stop)
		}
		for _, item := range p.Checklist() {
			if item.Topic == "" || item.Ask == "" {
				t.Errorf("%s: %+v", p.Name, item)
			}
		}
	}
	for _, containers := range []string{"runpod", "vast"} {
		if p, ok := Find(containers); !ok || !strings.Contains(p.Unfit, "container") {
			t.Errorf("%s: %+v", containers, p)
		}
	}
	if _, ok := Find("nowhere"); ok || !slices.Contains(Names(), "lambda") {
		t.Error("names")
	}
}

func TestPoweringOffSavesNothing(t *testing.T) {
	for _, n := range []string{"azure", "digitalocean", "scaleway", "nebius"} {
		p, _ := Find(n)
		if text := p.stopping(); !strings.Contains(text, "powering off from inside: ") || strings.Contains(text, "powering off from inside: ends") {
			t.Errorf("%s: %q", n, text)
		}
	}
	if got := (Provider{}).Checklist(); len(got) != 8 || got[7].Known != "" || got[6].Known != "" {
		t.Errorf("nothing is known of an unknown provider: %+v", got)
	}
}
