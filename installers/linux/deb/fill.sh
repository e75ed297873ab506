#!/usr/bin/env bash
# fill.sh TREE VERSION FOLDER: what makes a filled tree a Debian package: control files, documentation, lint overrides.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$1 version=$2 folder=$3
licences=$folder/_internal/dflash_desktop/resources/licences
doc=$tree/usr/share/doc/dflash-desktop
date=$(date -u -R -d "@$SOURCE_DATE_EPOCH")

find "$tree" -type d -exec chmod 755 {} +
find "$tree/usr/lib/dflash-desktop" -type f -exec chmod 644 {} +
chmod 755 "$tree/usr/lib/dflash-desktop/dflash-desktop"

mkdir -p "$doc" "$tree/usr/share/man/man1" "$tree/usr/share/lintian/overrides" "$tree/DEBIAN"
{
    cat "$here/copyright"
    printf '\nThe licences of everything inside: /usr/lib/dflash-desktop/%s\n' "${licences#"$folder"/}/third-party.txt"
} >"$doc/copyright"
{
    printf 'dflash-desktop (%s) stable; urgency=medium\n\n  * See %s\n' "$version" "resources/docs/CHANGELOG.md."
    printf '\n -- DFlash Desktop <noreply@dflash.invalid>  %s\n' "$date"
} | gzip -9n >"$doc/changelog.gz"
gzip -9nc "$here/dflash-desktop.1" >"$tree/usr/share/man/man1/dflash-desktop.1.gz"
install -m 644 "$here/lintian-overrides" "$tree/usr/share/lintian/overrides/dflash-desktop"
install -m 755 "$here/postrm" "$tree/DEBIAN/postrm"
find "$tree" -mindepth 1 -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
n_kib=$(du -sk --apparent-size "$tree/usr" | cut -f1)
sed -e "s/@VERSION@/$version/" -e "s/@SIZE@/$n_kib/" "$here/control" >"$tree/DEBIAN/control"
touch --date="@$SOURCE_DATE_EPOCH" "$tree/DEBIAN"/*
