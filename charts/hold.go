package charts

import "reflect"

// onDelete is the value of daemonsets.updateStrategy by which the operator's pods
// on a node stay as they are until somebody deletes them (chart values of the GPU
// Operator; controllers/object_controls.go, applyUpdateStrategyConfig). The driver
// has a way of its own.
const onDelete = "OnDelete"

// HoldOperands are the operator's values under which its pods on the nodes stay as
// they are when its release changes, so that one node can move first.
func HoldOperands(values map[string]any) map[string]any {
	held, _ := Merge(values, map[string]any{"daemonsets": map[string]any{"updateStrategy": onDelete}})
	return held
}

// OperandsHeld says whether values hold the operator's pods on the nodes.
func OperandsHeld(values map[string]any) bool {
	return reflect.DeepEqual(lookup(values, []string{"daemonsets", "updateStrategy"}), onDelete)
}
