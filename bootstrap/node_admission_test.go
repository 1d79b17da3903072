package bootstrap

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gpuctl/gpuctl/internal/smoke"
)

func TestARefusalAtAdmissionIsTriedAgain(t *testing.T) {
	failure := func(code string) error {
		return &notProven{"gpu-1", smoke.Report{Nodes: []smoke.NodeReport{{Node: "gpu-1", Status: smoke.Failed, Findings: []smoke.Finding{{Code: code, Evidence: "x"}}}}}}
	}
	refused, wrong := failure(smoke.CodeAdmission), failure(smoke.CodeForeignUUID)
	for _, tc := range []struct {
		name  string
		come  []error
		tries int
	}{
		{"at once", []error{nil}, 1},
		{"the plugin comes up", []error{refused, refused, nil}, 3},
		{"it never does", []error{refused, refused, refused, refused, nil}, admissionTries},
		{"another failure is one", []error{refused, wrong, nil}, 2},
	} {
		tries := 0
		err := whileRefused(t.Context(), time.Millisecond, func(string, ...any) {}, func(last bool) error {
			if tries++; last != (tries == admissionTries) {
				t.Errorf("%s: try %d is last: %v", tc.name, tries, last)
			}
			return tc.come[tries-1]
		})
		if tries != tc.tries || !errors.Is(err, tc.come[tries-1]) {
			t.Errorf("%s: %d tries, %v", tc.name, tries, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := whileRefused(ctx, time.Hour, func(string, ...any) {}, func(bool) error { return refused }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
