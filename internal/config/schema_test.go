package config

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
)

func TestSchemaIsUpToDate(t *testing.T) {
	const path = "../../docs/schema/gpuctl.schema.json"
	got, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("docs/schema is out of date: go test ./internal/config -update")
	}
	var s struct {
		Required   []string                          `json:"required"`
		Additional *bool                             `json:"additionalProperties"`
		Defs       map[string]map[string]interface{} `json:"$defs"`
	}
	if err := json.Unmarshal(got, &s); err != nil {
		t.Fatal(err)
	}
	if strings.Join(s.Required, " ") != "apiVersion kind metadata spec" || s.Additional == nil || *s.Additional {
		t.Errorf("required %v, additional %v", s.Required, s.Additional)
	}
	if !strings.Contains(string(got), "A machine may say otherwise") && !strings.Contains(string(got), "path of a private key") {
		t.Error("the comments of the types are missing")
	}
}

// generate makes the JSON Schema of gpuctl.yaml. Comments of the
// types become descriptions.
func generate() ([]byte, error) {
	r := jsonschema.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, ExpandedStruct: true}
	if err := r.AddGoComments("github.com/gpuctl/gpuctl/internal/config", "./"); err != nil {
		return nil, fmt.Errorf("reading the comments of the types: %w", err)
	}
	s := r.Reflect(&Config{})
	for _, name := range []string{"timeSlicing", "mps"} { // the number of pods alone will do
		property, _ := s.Definitions["Sharing"].Properties.Get(name)
		number := &jsonschema.Schema{Type: "integer", Minimum: "2"}
		property.OneOf, property.Ref = []*jsonschema.Schema{number, {Ref: property.Ref}}, ""
	}
	for _, name := range []string{"k3s", "packages", "charts", "images"} { // the URL alone will do
		property, _ := s.Definitions["Sources"].Properties.Get(name)
		property.OneOf, property.Ref = []*jsonschema.Schema{{Type: "string"}, {Ref: property.Ref}}, ""
	}
	mig, _ := s.Definitions["Sharing"].Properties.Get("mig") // the profile alone will do
	mig.OneOf, mig.Ref = []*jsonschema.Schema{{Type: "string"}, {Ref: mig.Ref}}, ""
	s.ID = "https://gpuctl.dev/schema/v1alpha1/cluster.json"
	s.Title = "gpuctl.yaml"
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema: %w", err)
	}
	return append(data, '\n'), nil
}
