{{- /*
  The index of the search: a section of each heading, and one of each reason that a table explains, which has an anchor.
  \x01 and \x02 stand around the ID at the beginning of each section.
*/ -}}
{{- $sections := slice -}}
{{- range where site.Pages "File" "!=" nil -}}
  {{- $page := . -}}
  {{- $path := strings.TrimPrefix "/" .RelPermalink -}}
  {{- $title := partial "title.html" . -}}
  {{- $content := replaceRE `<(h[1-6]|a) id="([^"]+)">` "\x01$2\x02<$1>" .Content -}}
  {{- /* Cells and items are words of their own. */ -}}
  {{- $content = replaceRE `</(td|th|li|p|pre|h[1-6])>|<br>` " $0" $content -}}
  {{- $above := "" -}}
  {{- range after 1 (split $content "\x01") -}}
    {{- $parts := split . "\x02" -}}
    {{- $id := index $parts 0 -}}
    {{- $html := index $parts 1 -}}
    {{- $heading := "" -}}
    {{- if hasPrefix $html "<a>" -}}
      {{- /* A reason ends with its row. */ -}}
      {{- $html = index (split $html "</tr>") 0 -}}
      {{- with findRESubmatch `<code>([^<]+)</code>` $html 1 }}{{ $heading = index . 0 1 }}{{ end -}}
      {{- $sections = $sections | append (dict "url" (printf "%s#%s" $path $id) "heading" (htmlUnescape $heading) "title" (printf "%s: %s" $title $above) "text" (trim (replaceRE `\s+` " " (plainify $html | htmlUnescape)) " ")) -}}
    {{- else -}}
      {{- with findRESubmatch `(?s)^<h[1-6]>(.*?)( <a class="anchor"|</h[1-6]>)` $html 1 }}{{ $heading = plainify (index . 0 1) | htmlUnescape | strings.TrimSpace }}{{ end -}}
      {{- $above = $heading -}}
      {{- $text := replaceRE `(?s)^<h[1-6]>.*?</h[1-6]>` "" $html -}}
      {{- $sections = $sections | append (dict "url" (cond (eq $heading $title) $path (printf "%s#%s" $path $id)) "heading" $heading "title" $title "text" (trim (replaceRE `\s+` " " (plainify $text | htmlUnescape)) " ")) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $sections | jsonify | safeJS }};
