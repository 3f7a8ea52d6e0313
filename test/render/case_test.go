package render

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/userdata"
)

// A golden is one folder of testdata:
//
//	xr.yaml         the XR as the API server has it, defaults included
//	observed*.yaml  resources that the XR composed before; optional
//	required.yaml   other objects of the control plane
//	context.yaml    the pipeline context from the controller of Machines; only for
//	                Machines, whose want.yaml has the resulting context
//	want.yaml       the expected output
type golden struct {
	t   *testing.T
	dir string
}

func (g golden) file(name string) string { return filepath.Join("testdata", g.dir, name) }

// render runs Crossplane's renderer with the case's files and additional arguments.
func (g golden) render(composition string, observed []*unstructured.Unstructured, args ...string) output {
	g.t.Helper()
	args = append([]string{
		"--xr", g.file("xr.yaml"), "--composition", composition, "--function", function,
		"--required", g.written("required.yaml", g.read(g.file("required.yaml"))),
		"--observed", g.written("observed.yaml", observed),
	}, args...)
	if context := g.context(); context != nil {
		args = append(args, "--context", g.written("context.yaml", []*unstructured.Unstructured{{Object: context}}))
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(g.t.Context(), filepath.Join(bin, "render"), args...)
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		g.t.Fatalf("render: %v: %s%s", err, log.String(), out.String())
	}
	var o output
	if err := yaml.Unmarshal(out.Bytes(), &o); err != nil {
		g.t.Fatal(err)
	}
	o.stabilize()
	return o
}

// observed are the resources of the observed files.
func (g golden) observed() []*unstructured.Unstructured {
	g.t.Helper()
	files, err := filepath.Glob(g.file("observed*.yaml"))
	if err != nil {
		g.t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, f := range files {
		all = append(all, g.read(f)...)
	}
	return all
}

// context of the pipeline when it begins, nil if the case has none. The hash of published user
// data is that of the template in want.yaml. So after a change of the template, golden files must
// be updated twice.
func (g golden) context() map[string]any {
	g.t.Helper()
	b, err := os.ReadFile(g.file("context.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	context := map[string]any{}
	if err == nil {
		err = yaml.Unmarshal(b, &context)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	if published, _, _ := unstructured.NestedBool(context, step.ContextJoin, "published"); !published {
		return context
	}
	asked, _, _ := unstructured.NestedMap(g.want().Context, step.ContextBootstrap, "join")
	template, _ := asked["userData"].(string)
	encoding, _ := asked["encoding"].(string)
	if err := unstructured.SetNestedField(context, userdata.Hash(template, clusterv1alpha1.UserDataEncoding(encoding)), step.ContextJoin, "hash"); err != nil {
		g.t.Fatal(err)
	}
	return context
}

// read the YAML documents of a file.
func (g golden) read(file string) []*unstructured.Unstructured {
	g.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []*unstructured.Unstructured
	for d := yamlstream.NewYAMLOrJSONDecoder(f, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			g.t.Fatalf("%s: %v", file, err)
		}
		encode(u)
		all = append(all, u)
	}
}

// written to a file of the test.
func (g golden) written(name string, objects []*unstructured.Unstructured) string {
	g.t.Helper()
	var b bytes.Buffer
	for _, o := range objects {
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			g.t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(document)
	}
	file := filepath.Join(g.t.TempDir(), name)
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return file
}

func (g golden) want() output {
	g.t.Helper()
	b, err := os.ReadFile(g.file("want.yaml"))
	if err != nil {
		g.t.Fatal(err)
	}
	var o output
	if err := yaml.UnmarshalStrict(b, &o); err != nil {
		g.t.Fatalf("%s: %v", g.file("want.yaml"), err)
	}
	return o
}

// compare with want.yaml, or update it.
func (g golden) compare(got output) {
	g.t.Helper()
	b, err := yaml.Marshal(got)
	if err != nil {
		g.t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(g.file("want.yaml"), b, 0o644); err != nil {
			g.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(g.file("want.yaml"))
	if err != nil {
		g.t.Fatalf("%v: -update writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(b), "\n")); diff != "" {
		g.t.Errorf("%s: -want +got, -update accepts it:\n%s", g.file("want.yaml"), diff)
	}
}

// Secrets in the files of a case have their data as text, so that people can read it. Like the
// API server, encode converts stringData to data, and decode does the opposite.
func encode(o *unstructured.Unstructured) {
	convert(o, "stringData", "data", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) })
}

func decode(o *unstructured.Unstructured) {
	convert(o, "data", "stringData", func(s string) string {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return "not base64: " + s
		}
		return string(b)
	})
}

func convert(o *unstructured.Unstructured, from, to string, f func(string) string) {
	values, ok := o.Object[from].(map[string]any)
	if !ok || o.GetKind() != "Secret" {
		return
	}
	converted := map[string]any{}
	for k, v := range values {
		s, _ := v.(string)
		converted[k] = f(s)
	}
	delete(o.Object, from)
	o.Object[to] = converted
}
