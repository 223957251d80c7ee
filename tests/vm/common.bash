# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
#
# Sourced by the scripts beside it: paths, messages, locks and the two tables.

vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$vm/../.." && pwd)
build=${TASKSHARED_BUILD:-$top/build}
cache=${TASKSHARED_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/taskshared}

# Messages go to standard error, so that a script's answer (a path) can be
# taken from its standard output.
say() { printf '%s\n' "$*" >&2; }

die()
{
	printf '%s: error: %s\n' "${0##*/}" "$1" >&2
	shift
	if [ $# -gt 0 ]; then
		printf '  %s\n' "$@" >&2
	fi
	exit 1
}

# require_value OPTION COUNT: an option at the end of the line has no value,
# and "shift 2" would then fail without a word.
require_value()
{
	[ "$2" -ge 2 ] || die "option $1 needs a value"
}

require_number()
{
	[[ $2 =~ ^[1-9][0-9]*$ ]] || die "option $1: '$2' is not a number above 0"
}

# with_lock NAME COMMAND...: one at a time over all runs that share the cache.
# The descriptor is opened in a subshell, so the lock ends with it even when
# the command fails.
with_lock()
{
	local file=$cache/locks/$1
	shift
	mkdir -p "$cache/locks"
	(
		exec {lock}>"$file"
		if ! flock --nonblock "$lock"; then
			say "waiting for another run that holds $file"
			flock "$lock"
		fi
		"$@"
	)
}

# make_temp: a folder inside the cache, so that the final mv is a rename. What
# killed runs left behind goes after a day; --one-file-system is for the case
# that somebody mounted something there.
make_temp()
{
	mkdir -p "$cache/tmp"
	find "$cache/tmp" -mindepth 1 -maxdepth 1 -mmin +1440 \
		-exec rm -rf --one-file-system {} +
	mktemp -d "$cache/tmp/XXXXXXXX"
}

# table FILE: its rows, without comments and blank lines.
table()
{
	[ -r "$1" ] || die "table $1 cannot be read"
	grep -Ev '^(#|[[:space:]]*$)' "$1" || true
}

# table_names FILE: the first column, on one line.
table_names() { table "$1" | cut -f1 | paste -sd' '; }

# table_row FILE NAME WHAT: the row of NAME, or an error that lists the names.
table_row()
{
	local row
	row=$(table "$1" | awk -F'\t' -v name="$2" '$1 == name')
	[ -n "$row" ] || die "unknown $3 '$2'" "known: $(table_names "$1")"
	printf '%s\n' "$row"
}

kernels_table=$vm/kernels.tsv
tests_table=$vm/tests.tsv

default_kernels()
{
	table "$kernels_table" | awk -F'\t' '$4 == "default" { print $1 }' | paste -sd' '
}
