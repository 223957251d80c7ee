# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Sourced after common.bash: the build chroots, one per Debian suite. A kernel
# is built against its own headers with its own suite's compiler and libc, and
# apt inside the chroot resolves, chooses and verifies every package.

# Raised when an old chroot must not be used any more.
chroot_format=1

chroot_root() { printf '%s\n' "$cache/chroots/$1"; }

# host_mirror LABEL: where this machine itself gets Debian from, so that the
# tree need not name a host and a local mirror is used when there is one.
host_mirror()
{
	# shellcheck disable=SC2016 # apt expands these, not the shell
	apt-get indextargets --format '$(LABEL)|$(SITE)' 'Origin: Debian' 2>/dev/null |
		awk -F'|' -v label="$1" \
			'$1 == label && $2 ~ /^https?:/ { print $2; exit }'
}

# chroot_sources SUITE MAIN SECURITY: lines for sources.list.
chroot_sources()
{
	local suite=$1 main=$2 security=$3
	local options='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'

	echo "deb $options $main $suite main"
	echo "deb $options $security $suite-security main"
	# Newer kernels than the release's own come from its backports.
	if [ "$suite" = trixie ]; then
		echo "deb $options $main $suite-backports main"
	fi
}

# What the host's apt was told about reaching the mirror (proxy, a clock that
# is off, a snapshot mirror) holds inside as well.
host_apt_options()
{
	apt-config dump | grep -Ei '^Acquire::(.*proxy|check-(valid-until|date))' || true
}

chroot_make()
{
	local suite=$1 root temp main security
	root=$(chroot_root "$suite")
	if [ "$(cat "$root/.taskshared-format" 2>/dev/null)" = "$chroot_format" ]; then
		return 0
	fi
	[ "$(id -u)" = 0 ] ||
		die "making the $suite chroot needs root (mmdebstrap, chroot, mount)"

	say "$suite: making the build chroot (about a minute) ..."
	temp=$(make_temp)
	main=$(host_mirror Debian)
	security=$(host_mirror Debian-Security)
	# Debian's own mirrors and most copies have the two side by side.
	[ -n "$security" ] || security=${main%/debian*}/debian-security

	# From standard input ("-") it writes etc/apt/sources.list; with no source
	# at all it takes its default mirrors.
	local -a sources=()
	: >"$temp/sources"
	if [ -n "$main" ]; then
		chroot_sources "$suite" "$main" "$security" >"$temp/sources"
		sources=(-)
	fi
	# Some headers depend on their kernel image: leave out its drivers, and the
	# hooks that would spend a minute on an initramfs that nobody boots.
	# In a mount namespace of its own: a killed run must not leave /dev
	# mounted in a folder that somebody then deletes.
	if ! unshare --mount mmdebstrap --quiet --mode=root --variant=apt \
		--keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
		--include=gcc,make,ca-certificates \
		--dpkgopt="path-exclude=/etc/kernel/*" \
		--dpkgopt="path-exclude=/lib/modules/*/kernel/*" \
		--dpkgopt="path-exclude=/usr/lib/modules/*/kernel/*" \
		"$suite" "$temp/root" ${sources[@]+"${sources[@]}"} \
		<"$temp/sources" >"$temp/log" 2>&1; then
		tail -n 20 "$temp/log" >&2
		rm -rf --one-file-system "$temp"
		die "mmdebstrap could not make the $suite chroot" \
			"mirror: ${main:-the default of mmdebstrap}" \
			"check that apt-get update works on this machine"
	fi
	if [ -z "$main" ]; then
		# The default mirrors: read them back to add what is missing.
		main=$(awk '$1 == "deb" { print $(NF - 2); exit }' \
			"$temp/root/etc/apt/sources.list")
		chroot_sources "$suite" "$main" "${main%/debian*}/debian-security" \
			>"$temp/root/etc/apt/sources.list"
	fi
	host_apt_options >"$temp/root/etc/apt/apt.conf.d/90host"
	echo "$chroot_format" >"$temp/root/.taskshared-format"

	mkdir -p "$cache/chroots"
	rm -rf --one-file-system "$root"
	mv "$temp/root" "$root"
	rm -rf --one-file-system "$temp"
}

# chroot_run SUITE [HOST=GUEST]... -- COMMAND...
# Runs in mount and process namespaces of its own: nothing stays mounted or
# running when the run is killed. /proc is needed by objtool (7.3).
chroot_run()
{
	local root
	root=$(chroot_root "$1")
	shift
	local -a binds=()
	while [ "$1" != -- ]; do
		binds+=("$1")
		shift
	done
	shift
	cat /etc/resolv.conf >"$root/etc/resolv.conf" 2>/dev/null || true

	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --mount --pid --fork --kill-child -- bash -euc '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		while [ "$1" != -- ]; do
			mkdir -p "$root${1#*=}"
			mount --bind "${1%%=*}" "$root${1#*=}"
			shift
		done
		shift
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
			DEBIAN_FRONTEND=noninteractive \
			${http_proxy:+http_proxy="$http_proxy"} \
			${https_proxy:+https_proxy="$https_proxy"} \
			chroot "$root" "$@"
	' bash "$root" ${binds[@]+"${binds[@]}"} -- "$@"
}

# chroot_refresh SUITE [force]: package lists, at most once a day. Fails when
# the mirror cannot be reached; the caller decides whether old lists will do.
# TASKSHARED_LISTS=keep: a run that has begun stays with the lists it began with.
chroot_refresh()
{
	local suite=$1 force=${2:-} stamp log
	stamp=$(chroot_root "$suite")/var/lib/apt/taskshared-refreshed
	if [ -z "$force" ] && [ -e "$stamp" ]; then
		if [ "${TASKSHARED_LISTS:-}" = keep ] ||
			[ -n "$(find "$stamp" -mmin -1440)" ]; then
			return 0
		fi
	fi
	say "$suite: refreshing package lists ..."
	log=$(chroot_root "$suite")/var/log/taskshared-refresh
	if ! chroot_run "$suite" -- apt-get update -q -o APT::Update::Error-Mode=any \
		-o Acquire::Languages=none -o Acquire::Retries=2 \
		-o Acquire::http::Timeout=20 >"$log" 2>&1; then
		say "$suite: refreshing package lists failed:"
		grep -E '^[EW]:' "$log" | head -n 5 >&2 || true
		return 1
	fi
	touch "$stamp"
}

chroot_has()
{
	[ "$(dpkg-query --admindir="$(chroot_root "$1")/var/lib/dpkg" --show \
		--showformat '${db:Status-Status}' "$2" 2>/dev/null)" = installed ]
}

# chroot_install SUITE PACKAGE...: with one retry on fresh lists, for the day
# on which the archive dropped what the lists still name.
chroot_install()
{
	local suite=$1 log
	shift
	log=$(chroot_root "$suite")/var/log/taskshared-install
	if ! chroot_run "$suite" -- apt-get install -q -y --no-install-recommends \
		"$@" >"$log" 2>&1; then
		chroot_refresh "$suite" force || true
		chroot_run "$suite" -- apt-get install -q -y --no-install-recommends \
			"$@" >"$log" 2>&1 || {
			tail -n 15 "$log" >&2
			die "could not install $* in the $suite chroot"
		}
	fi
	chroot_run "$suite" -- apt-get clean
}

# chroot_download SUITE FOLDER PACKAGE...: the .deb files, verified by apt.
chroot_download()
{
	local suite=$1 folder=$2 log
	shift 2
	log=$(chroot_root "$suite")/var/log/taskshared-download
	chroot_run "$suite" "$folder=/fetch" -- sh -c \
		'cd /fetch && exec apt-get download -q -o APT::Sandbox::User=root "$@"' \
		sh "$@" >"$log" 2>&1 && return 0
	grep -E '^[EW]:' "$log" >&2 || tail -n 5 "$log" >&2
	return 1
}
