#!/usr/bin/env bash
# Makes the documentation a static site: the guides, the reference, and the API of the installed
# headers. Its search finds pages and C++ names. A warning of Doxygen is an error.
# usage: scripts/docs.sh [FOLDER]   (default: build/site)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
site=${1:-build/site}
if [ $# -gt 1 ] || [[ $site = -* ]]; then
  echo "usage: scripts/docs.sh [FOLDER]" >&2
  exit 2
fi

scripts/install_dependencies.sh --docs
rm -rf "$site"
mkdir -p "$site"
headers=$(sed '/^#/d; /^$/d' cmake/public_headers.txt cmake/extension_headers.txt)
headers=$(echo $headers)  # unquoted: a line "FOLDER/*.h" is all of them
# In the order of the index, which lists all of them (a test holds that).
pages=$(grep -o '([a-z]*/[a-z-]*\.md)' docs/README.md | sed 's|(\(.*\))|docs/\1|' | tr '\n' ' ')
version=$(sed -n 's/^project(lacuna VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
sed -e "s|@HEADERS@|$headers|; s|@PAGES@|$pages|; s|@VERSION@|$version|; s|@ROOT@|$PWD|; s|@OUTPUT@|$site|" \
  docs/site/Doxyfile.in >"$site/Doxyfile"
doxygen "$site/Doxyfile"
rm "$site/Doxyfile"

# Doxygen also makes an empty page of each Markdown file. Searches for its name and links from comments open it, so it
# forwards to the page with the text.
for empty in "$site"/*_8md.html; do
  page=$(sed -n 's|.*<title>lacuna: \(.*\)\.md File Reference</title>.*|\1|p' "$empty")
  case $page in
    README) page=index ;;
    docs/README) page=documentation ;;
    *) page=md_$(tr '/-' '__' <<<"$page") ;;
  esac
  if [ ! -e "$site/$page.html" ]; then
    echo "docs: $empty should forward to $page.html, which does not exist" >&2
    exit 1
  fi
  echo "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url=$page.html\">" >"$empty"
done
# Doxygen links to nested classes even if all of them are private, and so not on the page.
{ grep -L 'name="nested-classes"' "$site"/class*.html || true; } |
  xargs -r sed -i 's|<a href="#nested-classes">Classes</a> &#124;||'
echo "The site is $site/index.html"
