#!/usr/bin/env bash
# Copies MiniSearch, which the search of the docs uses from its npm package into assets/minisearch:
#
#     site/minisearch.sh 7.2.0
#
# It needs npm; a build of the site does not, and minifies the file itself.
set -euo pipefail
version=${1:?the version of MiniSearch}

into=$(cd "$(dirname "$0")" && pwd)/assets/minisearch
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$temp"
npm pack --silent "minisearch@$version" >/dev/null
tar -xzf "minisearch-$version.tgz"
rm -rf "$into"
mkdir -p "$into"
# The map of the sources is left out, and the line that names it.
sed '/^\/\/# sourceMappingURL=/d' package/dist/umd/index.js >"$into/minisearch.js"
cp package/LICENSE.txt "$into/LICENSE"
echo "$version" >"$into/VERSION"
