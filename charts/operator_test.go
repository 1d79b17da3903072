package charts

import (
	"reflect"
	"testing"
)

func TestOperatorReleaseLetsTheUserWin(t *testing.T) {
	set, err := Load("26.7")
	if err != nil {
		t.Fatal(err)
	}
	set.Operator.Values = map[string]any{"migManager": map[string]any{"enabled": true}, "gfd": map[string]any{"enabled": true}}
	user := map[string]any{"cdi": map[string]any{"enabled": false}, "gfd": map[string]any{"enabled": false}}
	rel, overrides := set.OperatorRelease(Want{}, user)
	if !reflect.DeepEqual(overrides, []string{"cdi.enabled", "migManager.enabled"}) {
		t.Errorf("overrides %v", overrides)
	}
	if rel.Values["gfd"].(map[string]any)["enabled"] != false || rel.Chart.SHA256 != set.Operator.SHA256 || !rel.Adopt {
		t.Errorf("got %+v", rel)
	}
	plain, _ := set.OperatorRelease(Want{}, nil)
	if plain.Values["cdi"].(map[string]any)["enabled"] != true {
		t.Error("the set's runtime path was not taken")
	}
}
