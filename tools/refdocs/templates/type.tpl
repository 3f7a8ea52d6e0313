{{- define "type" -}}
{{- $type := . -}}
{{- if markdownShouldRenderType $type }}
### {{ $type.Name }}

{{ template "doc" $type.Doc }}
{{ if $type.GVK }}
`apiVersion: {{ $type.GVK.Group }}/{{ $type.GVK.Version }}`, `kind: {{ $type.GVK.Kind }}`
{{ end }}
{{- with $type.SortedReferences }}
Used by: {{ range $i, $r := . }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}
{{ end }}
{{- with index $type.Markers "kubebuilder:validation:XValidation" }}
Rules:
{{ range . }}
- {{ template "rule" . }}
{{- end }}
{{ end }}
{{- if $type.Members }}
| field | meaning | default | rules |
|---|---|---|---|
{{ range $type.Members -}}
| `{{ .Name }}` {{ if eq .Type.UID "[]byte" }}string, base64{{ else }}{{ markdownRenderType .Type }}{{ end }} | {{ if eq .Name "metadata" }}{{ if .Doc }}{{ template "text" .Doc }}{{ else }}Standard metadata of Kubernetes.{{ end }}{{ else }}{{ template "text" .Doc }}{{ end }} | {{ template "default" (dict "field" . "kind" $type.GVK) }} | {{ template "rules" . }} |
{{ end -}}
{{ else if $type.EnumValues }}
| value | meaning |
|---|---|
{{ range $type.EnumValues -}}
| `{{ .Name }}` | {{ template "text" .Doc }} |
{{ end -}}
{{ else if $type.IsAlias }}
Written as {{ markdownRenderTypeLink $type.UnderlyingType }}.{{ range $type.Validation }} {{ . }}.{{ end }}
{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The comment of a type: paragraphs, and lists that are indented. Markers are none of it. */ -}}
{{- define "doc" -}}
{{- $text := regexReplaceAll "(?m)^\\+.*$" . "" | trim -}}
{{- regexReplaceAll "\n\n\n+" $text "\n\n" | replace "\t" "    " | replace "<" "&lt;" | replace "*" "\\*" -}}
{{- end -}}

{{- /* A comment, in one line. */ -}}
{{- define "text" -}}
{{ regexReplaceAll "\\s+" (trim .) " " | replace "|" "\\|" | replace "<" "&lt;" | replace "*" "\\*" }}
{{- end -}}

{{- /* A field is required if it has neither a default nor the marker of an optional one. Of a kind, metadata and status never are. */ -}}
{{- define "default" -}}
{{- $m := .field.Markers -}}
{{- with index $m "kubebuilder:default" -}}
`{{ (last .).Value | toRawJson | replace "|" "\\|" }}`
{{- else -}}
{{- if not (or (index $m "optional") (index $m "kubebuilder:validation:Optional") (and .kind (or (eq .field.Name "metadata") (hasSuffix "Status" .field.Type.Name)))) }}required{{ end -}}
{{- end -}}
{{- end -}}

{{- /* What is left out shows in the column of the default, or in the type. */ -}}
{{- define "rules" -}}
{{- $rules := list -}}
{{- range .Validation -}}
{{- if not (regexMatch "^(Optional|Required|Schemaless|Type|XIntOrString|XEmbeddedResource):?" .) -}}
{{- $rules = append $rules (replace "|" "\\|" .) -}}
{{- end -}}
{{- end -}}
{{- join "<br>" $rules -}}
{{- range $i, $r := index .Markers "kubebuilder:validation:XValidation" -}}
{{- if or $rules $i }}<br>{{ end -}}
{{ template "rule" $r }}
{{- end -}}
{{- end -}}

{{- define "rule" -}}
{{ if .FieldPath }}`{{ trimPrefix "." .FieldPath }}`: {{ end }}{{ template "text" .Message }}
{{- end -}}
