// Command render shows the effects of Crossplane on an XR. It runs the real reconciler ("crossplane
// internal render") with functions that listen without TLS, and prints the result as one YAML
// document.
//
//	render --xr XR.yaml --composition COMPOSITION.yaml --function 127.0.0.1:9443
//
// Flags:
//
//	--xr FILE               the XR (required)
//	--composition FILE      the Composition (required)
//	--function ADDRESS      host:port of the functions of the pipeline, or
//	                        NAME=ADDRESS of one of them (repeatable, required)
//	--xrd FILE              its XRD; needed only for scope LegacyCluster
//	--observed FILE         composed resources that exist already, as YAML documents
//	                        (repeatable). Each needs the annotation
//	                        crossplane.io/composition-resource-name. If the XR has a
//	                        UID, they need an owner reference to it as controller.
//	--required FILE         objects that functions may request, as YAML documents
//	                        (repeatable)
//	--required-schema FILE  OpenAPI v3 documents that functions may request (repeatable)
//	--context FILE          the context at the start of the pipeline, a YAML map. The
//	                        context at its end is then printed too. The Machine
//	                        controller passes facts to the pipeline in it.
//	--crossplane FILE       the Crossplane binary (default: "crossplane" beside render)
//	--timeout DURATION      default 1m
//
// The document has the fields composite (the XR with status and conditions), composed, deleted,
// events, requiredResources, requiredSchemas and context. Lists of objects are ordered by the
// functions' names for them, and times of conditions are omitted, so that the same input gives the
// same output.
//
// A Machine is rendered as if it were an XR: its controller runs the same pipeline.
//
// The exit status is 1 if the render failed. If the pipeline ended with a fatal result, the
// document is printed nevertheless.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/cluster/internal/render"
)

type cli struct {
	XR             string        `name:"xr" required:"" type:"existingfile" help:"The XR."`
	Composition    string        `required:"" type:"existingfile" help:"The Composition."`
	Function       []string      `required:"" sep:"none" help:"Address of the functions, or NAME=ADDRESS of one." placeholder:"[NAME=]HOST:PORT"`
	XRD            string        `name:"xrd" type:"existingfile" help:"The XRD; needed only for scope LegacyCluster."`
	Observed       []string      `sep:"none" type:"existingfile" help:"Composed resources that exist already."`
	Required       []string      `sep:"none" type:"existingfile" help:"Objects that functions may ask for."`
	RequiredSchema []string      `sep:"none" type:"existingfile" help:"OpenAPI v3 documents that functions may ask for."`
	Context        string        `type:"existingfile" help:"The context of the pipeline when it begins."`
	Crossplane     string        `help:"The Crossplane binary; by default that beside this one." placeholder:"FILE"`
	Timeout        time.Duration `default:"1m" help:"How long to wait."`
}

func main() {
	c := cli{}
	k := kong.Parse(&c, kong.Name("render"), kong.Description("Show what Crossplane would do with an XR."))
	k.FatalIfErrorf(c.run(os.Stdout))
}

func (c *cli) run(w io.Writer) error {
	in, err := c.input()
	if err != nil {
		return err
	}
	binary := c.Crossplane
	if binary == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		binary = filepath.Join(filepath.Dir(self), "crossplane")
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	out, renderErr := render.Run(ctx, binary, in)
	if out == nil {
		return renderErr
	}
	b, err := yaml.Marshal(out)
	if err == nil {
		_, err = w.Write(b)
	}
	return errors.Join(renderErr, err)
}

func (c *cli) input() (render.Input, error) {
	in := render.Input{Functions: map[string]string{}}
	for _, f := range c.Function {
		name, address, named := strings.Cut(f, "=")
		if !named {
			name, address = "", f
		}
		in.Functions[name] = address
	}
	for _, one := range []struct {
		path string
		into **unstructured.Unstructured
	}{{c.XR, &in.XR}, {c.Composition, &in.Composition}, {c.XRD, &in.XRD}} {
		if one.path == "" {
			continue
		}
		objects, err := read(one.path)
		if err != nil {
			return in, err
		}
		if len(objects) != 1 {
			return in, fmt.Errorf("%s: got %d documents, want 1", one.path, len(objects))
		}
		*one.into = objects[0]
	}
	for _, many := range []struct {
		paths []string
		into  *[]*unstructured.Unstructured
	}{{c.Observed, &in.Observed}, {c.Required, &in.Required}, {c.RequiredSchema, &in.RequiredSchemas}} {
		for _, path := range many.paths {
			objects, err := read(path)
			if err != nil {
				return in, err
			}
			*many.into = append(*many.into, objects...)
		}
	}
	if c.Context == "" {
		return in, nil
	}
	b, err := os.ReadFile(c.Context)
	if err != nil {
		return in, err
	}
	in.Context = map[string]any{}
	if err := yaml.Unmarshal(b, &in.Context); err != nil {
		return in, fmt.Errorf("%s: %w", c.Context, err)
	}
	return in, nil
}

// read reads all documents of a file.
func read(path string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var objects []*unstructured.Unstructured
	for d := yamlstream.NewYAMLOrJSONDecoder(f, 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}
