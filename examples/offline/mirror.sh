#!/usr/bin/env bash
# mirror.sh FINGERPRINT RELEASE MIRROR: makes mirrors of the provider in the directory MIRROR, from the files of a release in the directory
# RELEASE, after it has verified them. FINGERPRINT is that of the key that signs releases; gpg must have the key.
# For several releases, call it once for each, with the same MIRROR. It needs bash, awk, coreutils, findutils, gpg and unzip, and no network.
set -euo pipefail

die() { echo "mirror.sh: $*" >&2; exit 1; }

[ "$#" = 3 ] || die "call it as: mirror.sh FINGERPRINT RELEASE MIRROR"
fingerprint=${1// /} fingerprint=${fingerprint^^} release=$(realpath "$2") mirror=$(realpath -m "$3")
[[ $fingerprint =~ ^[0-9A-F]{40}$ ]] || die "$1 is not a fingerprint: 40 digits from 0 to 9 and A to F"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$release"
sums=$(find . -maxdepth 1 -name 'terraform-provider-metal_*_SHA256SUMS' -printf '%f\n')
[ -f "$sums" ] || die "$release must have one file terraform-provider-metal_VERSION_SHA256SUMS"
version=${sums#terraform-provider-metal_} version=${version%_SHA256SUMS}
gpg --batch --status-fd 3 --verify "$sums.sig" "$sums" 3> "$work/status" || die "the signature of $sums is wrong, or gpg lacks its key"
grep -q '^\[GNUPG:\] GOODSIG ' "$work/status" || die "the key that has signed $sums is revoked, or has expired"
grep -qE "^\[GNUPG:\] VALIDSIG ($fingerprint .*|.* $fingerprint)\$" "$work/status" || die "another key than $fingerprint has signed $sums"
sha256sum --check --quiet --ignore-missing "$sums" || die "a file of $release is not as $sums says"

shopt -s nullglob
zips=(terraform-provider-metal_"$version"_*.zip)
[ "${#zips[@]}" != 0 ] || die "$release has no terraform-provider-metal_${version}_OS_ARCH.zip"
for zip in "${zips[@]}"; do
  awk -v name="$zip" '$2 == name { found = 1 } END { exit !found }' "$sums" || die "$sums does not name $zip"
done

hash() { sha256sum "$1" | cut -d ' ' -f 1; }

# A filesystem_mirror of zips, which is a network_mirror too, and a filesystem_mirror of directories.
packed=$mirror/packed/registry.terraform.io/terraform-provider-metal/metal
unpacked=$mirror/unpacked/registry.terraform.io/terraform-provider-metal/metal/$version
rm -rf "$unpacked"
mkdir -p "$packed" "$unpacked"
archives=
for zip in "${zips[@]}"; do
  platform=${zip#terraform-provider-metal_"$version"_} platform=${platform%.zip}
  cp -f "$zip" "$packed/"
  unzip -q "$zip" -d "$unpacked/$platform"
  # The hash that lock files call h1: that of the list of the files and their hashes.
  h1=$(cd "$unpacked/$platform" && find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1 | sed 's/../\\x&/g')
  h1=$(printf '%b' "$h1" | base64)
  archives+=${archives:+, }"\"$platform\": {\"url\": \"$zip\", \"hashes\": [\"h1:$h1\", \"zh:$(hash "$zip")\"]}"
done
echo "{\"archives\": {$archives}}" > "$packed/$version.json"
versions=$(cd "$packed" && for file in [0-9]*.json; do echo "\"${file%.json}\": {}"; done | paste -sd ,)
echo "{\"versions\": {$versions}}" > "$packed/index.json"
for layout in packed unpacked; do # OpenTofu looks for the provider under the name of its own registry; the files are the same
  from=$mirror/$layout/registry.terraform.io/terraform-provider-metal/metal to=$mirror/$layout/registry.opentofu.org/terraform-provider-metal
  mkdir -p "$to"
  rm -rf "$to/metal"
  cp -al "$from" "$to/" 2> /dev/null || { rm -rf "$to/metal"; cp -a "$from" "$to/"; } # not every file system has hard links
done

# An oci_mirror of OpenTofu, as an OCI image layout.
oci=$mirror/oci/$version
rm -rf "$oci"
mkdir -p "$oci/blobs/sha256"
blob() { # FILE: stores it, and prints what refers to it
  cp -f "$1" "$oci/blobs/sha256/$(hash "$1")"
  echo "\"digest\": \"sha256:$(hash "$1")\", \"size\": $(stat -c %s "$1")"
}
type=application/vnd.opentofu.provider image=application/vnd.oci.image.manifest.v1+json index=application/vnd.oci.image.index.v1+json
printf '{}' > "$work/empty"
empty=$(blob "$work/empty") manifests=
for zip in "${zips[@]}"; do
  platform=${zip#terraform-provider-metal_"$version"_} platform=${platform%.zip}
  cat > "$work/manifest" << END
{"schemaVersion": 2, "mediaType": "$image", "artifactType": "$type-target",
 "config": {"mediaType": "application/vnd.oci.empty.v1+json", $empty}, "layers": [{"mediaType": "archive/zip", $(blob "$zip")}]}
END
  manifests+=${manifests:+, }"{\"mediaType\": \"$image\", \"artifactType\": \"$type-target\", $(blob "$work/manifest"),
  \"platform\": {\"os\": \"${platform%_*}\", \"architecture\": \"${platform#*_}\"}}"
done
echo "{\"schemaVersion\": 2, \"mediaType\": \"$index\", \"artifactType\": \"$type\", \"manifests\": [$manifests]}" > "$work/index"
echo '{"imageLayoutVersion": "1.0.0"}' > "$oci/oci-layout"
cat > "$oci/index.json" << END
{"schemaVersion": 2, "mediaType": "$index", "manifests": [{"mediaType": "$index", "artifactType": "$type", $(blob "$work/index"),
 "annotations": {"org.opencontainers.image.ref.name": "$version"}}]}
END
echo "mirror.sh: $version for ${#zips[@]} platforms: $mirror/packed, $mirror/unpacked, $oci"
