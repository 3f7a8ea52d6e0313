{{- define "gvList" -}}
# API reference

<!-- Generated from the Go types in apis by "make generate". Do not edit. -->

The fields of the kinds of Drover, with their defaults and the rules of the API server. `kubectl explain` shows the same for the version that is installed.
[Conditions and events](../conditions.md) has what is in `status.conditions`, and [keys](labels.md) the labels, annotations, taints and finalizers.

A field is required if its column Default shows so. `{}` is the default of an object whose fields have defaults. A rule with a message is one of CEL: the API
server refuses what breaks it, with this message. The kinds of VMs are described with their [clouds](../providers/README.md).

These rules hold for all fields of a type, and are not repeated below. A field of the type Duration must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m. Labels that users write have the rules of Kubernetes: the keys must be names of at most 63 letters, digits, -, _ and ., that begin and end with a letter or a digit, and may follow a domain and a slash; the values must have at most 63 letters, digits, -, _ and ., and begin and end with a letter or a digit.
A field of the type Time must be a time with a time zone from the year 1000 to 2999, such as 2026-11-27T08:00:00Z or 2026-11-27T09:00:00+01:00. A field in base64 must be base64 of certificates in PEM, such as the output of: base64 -w0 ca.crt
Each value of a ResourceList must be a quantity, such as 500m, 4 or 16Gi.

{{ range . -}}
- {{ markdownRenderGVLink . }}
{{- range .SortedKinds }}{{ if not (hasSuffix "List" .) }}
  - [{{ . }}](#{{ lower . }})
{{- end }}{{ end }}
{{ end }}
{{- range . }}
{{ template "gvDetails" . }}
{{- end -}}
{{- end -}}
