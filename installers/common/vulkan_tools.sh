#!/usr/bin/env bash
# Lays what the Vulkan backend is compiled with below OUT, taken from the Debian release that has it new enough: headers,
# the loader's library, SPIRV-Headers and the shader compiler. Nothing of the machine is changed, and root is not needed.
#
#   installers/common/vulkan_tools.sh OUT
#
# The packages come from the very Debian mirror that the machine uses: its own source, with the suite's name replaced. apt
# checks the release's signature with the machine's keyring, and every package by the hashes in it. The shader compiler
# needs a newer C library than Debian 12 has, so that lies beside it and OUT/glslc starts it with its own.
set -euo pipefail
suite=trixie # Debian 13: Vulkan headers 1.4.309, shaderc 2025.2
packages=(libvulkan-dev libvulkan1 spirv-headers glslc libshaderc1 libc6 libstdc++6 libgcc-s1)

mkdir -p "${1:?the folder for the result}"
out=$(cd "$1" && pwd)
[[ ! -e $out/complete ]] || exit 0
etc=${DFLASH_ETC:-/etc} # tests have another one
codename=$(sed -n 's/^VERSION_CODENAME=//p' "$etc/os-release")
if ! grep -qx 'ID=debian' "$etc/os-release" || [[ -z $codename ]] || ! command -v apt-get >/dev/null; then
    echo "vulkan_tools.sh: this is no Debian release. Install Vulkan headers 1.4.309 or newer, the loader's library, glslc and" >&2
    echo "SPIRV-Headers; then backend.sh takes the system's." >&2
    exit 1
fi

rm -rf "${out:?}"/{apt,debs,usr,etc}
mkdir -p "$out/apt/lists/partial" "$out/apt/cache/archives/partial" "$out/debs"
# The first source of the machine's own release, in either of apt's two formats: "URI\tsigned-by".
found=$(
    shopt -s nullglob
    for file in "$etc"/apt/sources.list.d/*.sources; do
        awk -v want="$codename" -v RS= -F'\n' '{
            uri = key = ""; fits = 0
            for (i = 1; i <= NF; ++i) {
                n = split($i, word, /[ \t]+/)
                if (word[1] == "URIs:") uri = word[2]
                if (word[1] == "Signed-By:") key = word[2]
                if (word[1] == "Suites:") for (j = 2; j <= n; ++j) if (word[j] == want) fits = 1
            }
            if (fits && uri != "") print uri "\t" key
        }' "$file"
    done
    for file in "$etc"/apt/sources.list "$etc"/apt/sources.list.d/*.list; do
        [[ ! -f $file ]] || awk -v want="$codename" '$1 == "deb" {
            key = ""
            if (match($0, /signed-by=[^] ]+/)) key = substr($0, RSTART + 10, RLENGTH - 10)
            sub(/^deb[ \t]+(\[[^]]*\][ \t]*)?/, "")
            if ($2 == want) print $1 "\t" key
        }' "$file"
    done
)
IFS=$'\t' read -r uri key <<<"${found%%$'\n'*}" || true
if [[ -z $uri ]]; then
    echo "vulkan_tools.sh: apt's sources name no $codename to take the mirror from" >&2 && exit 1
fi
echo "deb [signed-by=${key:-/usr/share/keyrings/debian-archive-keyring.gpg}] $uri $suite main" >"$out/apt/sources.list"
options=(-qq -o "Dir::Etc::sourcelist=$out/apt/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$out/apt/lists" -o "Dir::Cache=$out/apt/cache" -o APT::Architecture=amd64
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3)
apt-get "${options[@]}" update
(cd "$out/debs" && apt-get "${options[@]}" download "${packages[@]}")
for package in "$out"/debs/*.deb; do
    dpkg -x "$package" "$out"
done
cat >"$out/glslc" <<'END'
#!/bin/sh
here=$(dirname "$0")
exec "$here/usr/lib64/ld-linux-x86-64.so.2" --library-path "$here/usr/lib/x86_64-linux-gnu" "$here/usr/bin/glslc" "$@"
END
chmod 755 "$out/glslc"
"$out/glslc" --version
rm -rf "$out/apt" "$out/debs"
touch "$out/complete"
