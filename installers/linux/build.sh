#!/usr/bin/env bash
# Builds what a person on Linux installs: a folder that needs no Python, and from it a .deb, a .tar.xz and an AppImage.
#
#   installers/linux/build.sh [--out FOLDER] [--formats "folder deb tar appimage"] [--wheel FILE]
#                            [--gpu vulkan|none] [--backend FILE]... [--feed URL]
#
# --out      where everything goes; default: dist/linux in the checkout
# --wheel    a wheel of dflash-desktop that was built already (DFLASH_CPU=all pip wheel --no-deps .)
# --gpu      vulkan, the default: the backend for graphics cards of every maker is built and shipped inside (15 minutes of
#            CPU time); without a driver it is passed over. none: processors only
# --backend  a further one to ship inside, as installers/common/backend.sh makes it (libggml-cuda.so); may be repeated
# --feed     where new versions are announced, for "Check for updates" (app/dflash_desktop/hub/releases.py)
#
# Needed: Debian 12 or Ubuntu 22.04 with g++ python3-venv binutils and the libraries of the README (they go into the
# folder); for the AppImage squashfs-tools and Debian's libsquashfuse-dev libfuse3-dev libzstd-dev. PYTHON names the
# interpreter that is shipped; it must have its shared library. The result runs on systems with glibc 2.35 or newer. What
# the Vulkan backend is compiled with is fetched on a Debian; elsewhere backend.sh says what it needs.
# SOURCE_DATE_EPOCH fixes the dates inside.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/dist/linux
formats="folder deb tar appimage"
wheel=
feed=
gpu=vulkan
backends=()
while (($#)); do
    case $1 in
        --out) out=$2 && shift 2 ;;
        --formats) formats=$2 && shift 2 ;;
        --wheel) wheel=$2 && shift 2 ;;
        --gpu) gpu=$2 && shift 2 ;;
        --backend) backends+=("$2") && shift 2 ;;
        --feed) feed=$2 && shift 2 ;;
        *) echo "build.sh: unknown argument $1; its first lines say what it takes" >&2 && exit 2 ;;
    esac
done
case $gpu in
    vulkan | none) ;;
    *) echo "build.sh: --gpu takes vulkan or none, not $gpu" >&2 && exit 2 ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
python=${PYTHON:-/usr/bin/python3}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/pyproject.toml")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1764547200)}
export PIP_DISABLE_PIP_VERSION_CHECK=1 QT_QPA_PLATFORM=offscreen LC_ALL=C.UTF-8
umask 022

step() { printf '== %s (after %s s)\n' "$1" "$SECONDS"; }
wants() { [[ " $formats " == *" $1 "* ]]; }

headers=
if [[ $gpu == vulkan ]]; then
    step "Vulkan backend"
    "$here/../common/backend.sh" vulkan "$out/backend"
    backends+=("$out/backend/libggml-vulkan.so")
    headers=$(<"$out/backend/vulkan-headers.txt")
fi

step "environment"
env=$out/env
"$python" -m venv --clear "$env"
"$env/bin/pip" install -q --upgrade pip
if [[ -z $wheel ]]; then
    step "wheel, with CPU code for old and new processors (a quarter of an hour on two cores)"
    rm -rf "$out/wheel"
    # A build folder of its own: the one for development keeps its CPU backend of this machine.
    (cd "$root" && DFLASH_CPU=all "$env/bin/pip" wheel -q --no-deps -C build-dir='.build/{wheel_tag}-all' -w "$out/wheel" .)
    wheel=$(echo "$out"/wheel/*.whl)
fi
"$env/bin/pip" install -q -c "$root/.ci/constraints.txt" "$wheel" -r "$root/installers/common/requirements.txt"
library_folder=$("$env/bin/python" -c 'from dflash_desktop.base.paths import library_folder; print(library_folder())')
for backend in "${backends[@]}"; do
    install -m 644 "$backend" "$library_folder/"
done

step "folder"
"$env/bin/python" "$root/installers/common/freeze.py" --out "$out" --feed "$feed" --vulkan-headers "$headers"
folder=$out/dflash-desktop
"$env/bin/python" "$here/check_folder.py" "$folder"
"$python" "$root/installers/common/smoke.py" "$folder/dflash-desktop"

# The files of a desktop, as a package installs them below usr/.
share() {
    local usr=$1
    "$env/bin/python" "$root/installers/common/icons.py" "$usr/share/icons/hicolor"
    install -D -m 644 "$root/resources/desktop/dflash-desktop.desktop" "$usr/share/applications/dflash-desktop.desktop"
    install -D -m 644 "$root/resources/desktop/dflash-desktop.mime.xml" "$usr/share/mime/packages/dflash-desktop.xml"
    install -D -m 644 -t "$usr/share/metainfo" "$root/resources/desktop/org.dflash.desktop.metainfo.xml"
}

if wants deb; then
    step "Debian package"
    tree=$out/deb
    rm -rf "$tree"
    share "$tree/usr"
    mkdir -p "$tree/usr/lib" "$tree/usr/bin"
    cp -a "$folder" "$tree/usr/lib/dflash-desktop"
    ln -s ../lib/dflash-desktop/dflash-desktop "$tree/usr/bin/dflash-desktop"
    "$here/deb/fill.sh" "$tree" "$version" "$folder"
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$out/dflash-desktop_${version}_amd64.deb" >/dev/null
fi

if wants tar; then
    step "archive"
    tar -C "$out" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -c dflash-desktop |
        xz -T0 >"$out/dflash-desktop-$version-linux-x86_64.tar.xz"
fi

if wants appimage; then
    # The program at the front of the image is compiled here, from appimage_runtime.c and Debian's libsquashfuse-dev,
    # libfuse3-dev and libzstd-dev. APPIMAGE_RUNTIME names another one (runtime-x86_64 of
    # https://github.com/AppImage/type2-runtime). Without either the image is left unfinished, and that is said.
    step "AppImage"
    tree=$out/AppDir
    rm -rf "$tree"
    share "$tree/usr"
    mkdir -p "$tree/usr/lib"
    cp -a "$folder" "$tree/usr/lib/dflash-desktop"
    ln -s usr/lib/dflash-desktop/dflash-desktop "$tree/AppRun"
    cp "$tree/usr/share/applications/dflash-desktop.desktop" "$tree/"
    cp "$tree/usr/share/icons/hicolor/256x256/apps/dflash-desktop.png" "$tree/"
    ln -s dflash-desktop.png "$tree/.DirIcon"
    for package in libsquashfuse-dev libfuse3-dev libzstd-dev libc6-dev; do # what the program at the front is linked from
        [[ ! -e /usr/share/doc/$package/copyright ]] ||
            install -D -m 644 "/usr/share/doc/$package/copyright" "$tree/usr/share/doc/appimage-runtime/$package.txt"
    done
    mksquashfs "$tree" "$out/AppDir.squashfs" -noappend -root-owned -no-progress -quiet -comp zstd -Xcompression-level 12
    runtime=${APPIMAGE_RUNTIME:-}
    if [[ -z $runtime ]] && grep -qs 'FUSE_USE_VERSION 3' /usr/include/squashfuse/config.h; then # Ubuntu 22.04's is of libfuse 2
        runtime=$out/work/appimage-runtime
        cc -std=c11 -Os -Wall -Wextra -static -s -o "$runtime" "$here/appimage_runtime.c" \
            -lsquashfuse_ll -lsquashfuse -lfuse3 -lzstd
        printf 'AI\002' | dd of="$runtime" bs=1 seek=8 conv=notrunc status=none # the mark of an AppImage, type 2
    fi
    if [[ -n $runtime ]]; then
        image=$out/DFlash-Desktop-$version-x86_64.AppImage
        cat "$runtime" "$out/AppDir.squashfs" >"$image"
        chmod 755 "$image"
    else
        echo "no AppImage: install libsquashfuse-dev libfuse3-dev libzstd-dev; its contents are ready in AppDir.squashfs" >&2
    fi
fi

step "done"
shopt -s nullglob
artefacts=("$out"/*.deb "$out"/*.tar.xz "$out"/*.AppImage)
for artefact in "${artefacts[@]}"; do # the bill of materials lies beside each
    cp "$out/dflash-desktop.cdx.json" "$artefact.cdx.json"
done
if ((${#artefacts[@]})); then
    (cd "$out" && sha256sum -- "${artefacts[@]##*/}" >SHA256SUMS)
fi
du -sh --apparent-size "$folder" "${artefacts[@]}"
