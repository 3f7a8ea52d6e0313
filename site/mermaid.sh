#!/usr/bin/env bash
# Copies the parts of Mermaid that the docs' diagrams need, unchanged, from its npm package into static/mermaid:
#
#     site/mermaid.sh 12.3.0
#
# The package loads a module for each kind of diagram when a page first has one. The modules of the kinds in kinds are
# copied, with all that they import: 1 MB of 38 MB. It needs npm; a build of the site does not.
set -euo pipefail
version=${1:?the version of Mermaid}
# Those that test/docs/pages allows: flowcharts (which dagre lays out), sequence and state diagrams.
kinds=(flowDiagram sequenceDiagram stateDiagram-v2 dagre)

into=$(cd "$(dirname "$0")" && pwd)/static/mermaid
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"
npm pack --silent "mermaid@$version" >/dev/null
tar -xzf "mermaid-$version.tgz"
cd package/dist

todo=(mermaid.esm.min.mjs)
for kind in "${kinds[@]}"; do
  todo+=("chunks/mermaid.esm.min/$kind"-[A-Z0-9]*.mjs)
done
rm -rf "$into"
while ((${#todo[@]})); do
  file=${todo[0]} todo=("${todo[@]:1}")
  [ -e "$into/$file" ] && continue
  mkdir -p "$into/$(dirname "$file")"
  cp "$file" "$into/$file"
  while read -r import; do
    todo+=("$(realpath --relative-to=. "$(dirname "$file")/$import")")
  done < <(grep -oE '(from|import)"\./[^"]+"' "$file" | cut -d'"' -f2 | sort -u)
done
cp ../LICENSE "$into/LICENSE"
echo "$version" >"$into/VERSION"
