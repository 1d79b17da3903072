package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// SetVersion returns a gpuctl.yaml with another release of k3s. Everything else
// stays to the byte. The version is checked as that of any file is.
func SetVersion(data []byte, file, version string) ([]byte, error) {
	old, err := Parse(data, file)
	if err != nil {
		return nil, err
	}
	if old.Spec.Kubernetes.Version == version {
		return data, nil
	}
	byHand := fmt.Errorf("%s is written in a way that cannot be changed safely: set spec.kubernetes.version to %s by hand", file, version)
	out, err := withVersion(data, scalarYAML(version))
	if err != nil {
		return nil, errors.Join(byHand, err)
	}
	got, err := Parse(out, file)
	if err != nil {
		return nil, err
	}
	old.Spec.Kubernetes.Version = version
	if !reflect.DeepEqual(got, old) {
		return nil, byHand
	}
	return out, nil
}

// withVersion changes the text: the version's value, or a new key at the head
// of spec.kubernetes, or a new spec.kubernetes at the head of spec.
func withVersion(data []byte, value string) ([]byte, error) {
	t, body, err := newText(data)
	if err != nil {
		return nil, err
	}
	spec := child(body, "spec")
	kubernetes := child(spec, "kubernetes")
	if have := child(kubernetes, "version"); have != nil {
		if _, plain := scalarText(have); !plain {
			return nil, errors.New("it is no single value now")
		}
		from, to := t.scalar(have)
		t.splice(from, to, value)
		return t.bytes(), nil
	}
	under, line := kubernetes, "version: "+value
	if len(pairs(kubernetes)) == 0 {
		if kubernetes != nil {
			return nil, errors.New("spec.kubernetes is empty")
		}
		under, line = spec, "kubernetes: {version: "+value+"}"
	}
	of := pairs(under)
	if len(of) == 0 {
		return nil, errors.New("there is no place for it")
	}
	at := of[0].Key.GetToken().Position
	sep := "\n" + strings.Repeat(" ", at.Column-1)
	if isFlow(under) {
		sep = ", "
	}
	start := t.offset(at.Line, at.Column)
	t.splice(start, start, line+sep)
	return t.bytes(), nil
}
