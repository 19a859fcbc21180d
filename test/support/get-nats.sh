#!/bin/sh
# Prints the path of a nats-server for the tests (2.12 or newer): $NATS_SERVER, the one in the cache, the one on PATH, or the one
# in Debian's signed archive, which is unpacked into the cache. Nothing is installed, and no system setting changes. If there is
# none, exits with 3 and prints the reason to standard error.
set -eu
least=2.12.0
cache=${1:?usage: get-nats.sh FOLDER}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

usable() {
	[ -x "$1" ] || return 1
	version=$("$1" --version 2>/dev/null | sed 's/.*v//')
	[ "$(printf '%s\n%s\n' "$version" "$least" | sort -V | head -n 1)" = "$least" ]
}
give_up() {
	echo "no nats-server $least or newer, $1" >&2
	exit 3
}

for one in "${NATS_SERVER:-}" "$cache/nats-server" "$(command -v nats-server || true)" /usr/sbin/nats-server; do
	if [ -n "$one" ] && usable "$one"; then
		echo "$one"
		exit 0
	fi
done

command -v apt-get >/dev/null && command -v dpkg >/dev/null || give_up 'and this system has no apt-get to fetch one'
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f "$keyring" ] || give_up 'and there is no keyring of the Debian archive'
mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(CREATED_BY)' 2>/dev/null |
	awk '$2 == "main" && $3 == "Packages" && $1 ~ /\/debian\/?$/ { print $1; exit }')
[ -n "$mirror" ] || give_up 'and the package sources of this system name no Debian mirror'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial"
echo "deb [signed-by=$keyring] $mirror testing main" >"$work/sources.list"
apt() {
	apt-get -qq -o "Dir::State::Lists=$work/lists" -o "Dir::Etc::SourceList=$work/sources.list" \
		-o Dir::Etc::SourceParts=/dev/null -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root "$@" >&2
}
apt update || give_up 'and the Debian archive cannot be reached'
(cd "$work" && apt download nats-server) || give_up 'and it could not be downloaded from the Debian archive'
dpkg -x "$work"/nats-server_*.deb "$work/unpacked"
# Another test may be doing the same.
cp "$work"/unpacked/usr/*bin/nats-server "$work/nats-server"
usable "$work/nats-server" || give_up 'and that of Debian testing is older'
mv "$work/nats-server" "$cache/nats-server.new.$$"
mv "$cache/nats-server.new.$$" "$cache/nats-server"
echo "$cache/nats-server"
