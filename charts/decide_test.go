package charts

import (
	"strings"
	"testing"
	"time"
)

// The situations of helm/helm#30601 and NVIDIA/gpu-operator#826: a record left
// behind by an interrupted run must not lock out the next, and a colleague's
// running operation must not be destroyed.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	rel := Release{Name: "gpu-operator", Chart: Chart{Version: "v26.7.0"}, Owner: "me"}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	tests := []struct {
		name  string
		state State
		want  Step
		why   string
	}{
		{"absent", State{Phase: Absent}, StepInstall, "absent"},
		{"equal", State{Phase: Deployed, Version: "v26.7.0", ValuesHash: "h"}, StepNone, "is deployed"},
		{"older version", State{Phase: Deployed, Version: "v26.3.3", ValuesHash: "h"}, StepUpgrade, "v26.3.3"},
		{"other values", State{Phase: Deployed, Version: "v26.7.0", ValuesHash: "x"}, StepUpgrade, "values differ"},
		{"failed over a good one", State{Phase: Failed, Revision: 3, LastGood: 2}, StepUpgrade, "revision 3 failed"},
		{"failed at first", State{Phase: Failed, Revision: 1}, StepRemove, "first install failed"},
		{"pending install, young, a stranger's", State{Phase: Pending, Status: "pending-install", Since: ago(time.Minute)}, StepWait, "still be at work"},
		{"pending install, young, own", State{Phase: Pending, Status: "pending-install", Since: ago(time.Minute), Owner: "me"}, StepRemove, "cut off"},
		{"pending install, old", State{Phase: Pending, Status: "pending-install", Since: ago(time.Hour)}, StepRemove, "1h0m0s"},
		{"pending upgrade, old", State{Phase: Pending, Status: "pending-upgrade", Since: ago(time.Hour), LastGood: 2}, StepRollback, "pending-upgrade"},
		{"pending upgrade, young, a stranger's", State{Phase: Pending, Status: "pending-upgrade", Since: ago(9 * time.Minute), LastGood: 2, Owner: "you"}, StepWait, "9m0s"},
		{"pending upgrade over nothing good", State{Phase: Pending, Status: "pending-upgrade", Since: ago(time.Hour)}, StepRemove, ""},
		{"pending rollback, own", State{Phase: Pending, Status: "pending-rollback", Since: ago(time.Second), LastGood: 2, Owner: "me"}, StepRollback, "cut off"},
		{"uninstalling", State{Phase: Uninstalling, Status: "uninstalling"}, StepRemove, "uninstall was cut off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, why := Decide(tt.state, rel, "h", now)
			if got != tt.want || !strings.Contains(why, tt.why) {
				t.Errorf("got %s (%s), want %s (...%s...)", got, why, tt.want, tt.why)
			}
		})
	}
	anon := Release{}
	if got, _ := Decide(State{Phase: Pending, Status: "pending-install", Since: ago(time.Minute)}, anon, "h", now); got != StepWait {
		t.Errorf("two nobodies are not the same owner: got %s", got)
	}
}
