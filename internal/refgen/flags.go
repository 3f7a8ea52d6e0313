package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A flag of a process.
type flag struct {
	name, kind, initial, env, help string
}

// Structs with flags, by package.
const (
	sharedFolder, sharedStruct = "internal/operator", "Flags"
	functionFolder             = "cmd/function-drover"
)

const flagsIntro = `# Flags

<!-- Generated from the code by "make generate". Do not edit. -->

The flags of Drover's processes. Each can also be given by its environment variable. Set them through a DeploymentRuntimeConfig: see
[operations](../operations.md#processes). The flags of the plugin are shown by ` + "`kubectl drover --help`" + `.

## All providers
`

func renderFlags(s *source) (string, error) {
	shared, err := s.load(sharedFolder)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(flagsIntro)
	if err := writeFlags(&out, shared, sharedStruct, map[string]string{"poll": "1m", "concurrency": "20"}); err != nil {
		return "", err
	}
	folders, err := s.folders("cmd/provider-*")
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		p, err := s.load(folder)
		if err != nil {
			return "", err
		}
		own, other := p.structNamed("flags"), p.otherDefaults()
		if own == nil && len(other) == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n", strings.TrimPrefix(folder, "cmd/"))
		for _, name := range slices.Sorted(maps.Keys(other)) {
			fmt.Fprintf(&out, "\nThe default of `--%s` is `%s`.\n", name, other[name])
		}
		if own != nil {
			if err := writeFlags(&out, p, "flags", nil); err != nil {
				return "", err
			}
		}
	}
	function, err := s.load(functionFolder)
	if err != nil {
		return "", err
	}
	out.WriteString("\n## function-drover\n")
	err = writeFlags(&out, function, "cli", nil)
	return out.String(), err
}

func writeFlags(out *strings.Builder, p *pkg, structName string, variables map[string]string) error {
	s := p.structNamed(structName)
	if s == nil {
		return fmt.Errorf("there is no struct %s", structName)
	}
	fmt.Fprintf(out, "\n| flag | type | default | environment | meaning |\n|---|---|---|---|---|\n")
	for _, field := range s.Fields.List {
		f, err := flagOf(field, variables)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", f.name, f.kind, f.initial, f.env, cell(f.help))
	}
	return nil
}

// flagOf a field of a struct for kong.
func flagOf(field *ast.Field, variables map[string]string) (flag, error) {
	raw, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return flag{}, err
	}
	tag := reflect.StructTag(raw)
	name := cmp.Or(tag.Get("name"), kebab(field.Names[0].Name))
	f := flag{name: "--" + name, kind: typeOf(field.Type), initial: tag.Get("default"), help: tag.Get("help")}
	if _, ok := tag.Lookup("negatable"); ok {
		f.name = "--[no-]" + name
	}
	for variable, value := range variables {
		f.initial = strings.ReplaceAll(f.initial, "${"+variable+"}", value)
	}
	if f.initial != "" {
		f.initial = "`" + f.initial + "`"
	}
	f.env = codes(strings.FieldsFunc(tag.Get("env"), func(r rune) bool { return r == ',' }))
	if f.help == "" {
		return f, fmt.Errorf("%s has no help", f.name)
	}
	return f, nil
}

// kebab turns the name of a field into that of a flag, as kong does.
func kebab(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

func typeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ArrayType:
		return "list of " + typeOf(e.Elt) + "s"
	case *ast.SelectorExpr:
		return strings.ToLower(e.Sel.Name)
	case *ast.Ident:
		return map[string]string{"int": "number"}[e.Name] + map[string]string{"bool": "bool", "string": "string"}[e.Name]
	}
	return ""
}

// structNamed returns the struct type of a name, nil if there is none.
func (p *pkg) structNamed(name string) *ast.StructType {
	var out *ast.StructType
	for _, f := range p.syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok && t.Name.Name == name {
				out, _ = t.Type.(*ast.StructType)
			}
			return true
		})
	}
	return out
}

// otherDefaults are those of shared flags that the process sets.
func (p *pkg) otherDefaults() map[string]string {
	out := map[string]string{}
	for _, f := range p.syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			v := p.value(kv.Value)
			if v == nil {
				return true
			}
			switch {
			case isNamed(kv.Key, "Poll"):
				nanoseconds, _ := constant.Int64Val(v)
				out["poll"] = short(time.Duration(nanoseconds))
			case isNamed(kv.Key, "Concurrency"):
				out["concurrency"] = v.ExactString()
			}
			return true
		})
	}
	return out
}

// short text of a duration: "5m" and not "5m0s".
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
