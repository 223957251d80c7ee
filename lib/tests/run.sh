#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh BUILD-FOLDER: tests of the library that need no device. Prints KTAP.

set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
lib=$(dirname "$here")
built=$(cd "$1" && pwd) || exit 1
out=$built/tests
rm -rf "$out"
mkdir -p "$out" || exit 1

include="-I$lib -I$lib/../uapi"
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
shared="-L$built -ltaskshared -Wl,-rpath,$built"
count=0
failed=0

result() { # result "ok|not ok" NAME
	count=$((count + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	echo "$1 $count - $2"
}

skip() { # skip NAME REASON
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

check() { # check NAME COMMAND...: one test
	name=$1
	shift
	if "$@" >"$out/log" 2>&1; then
		grep '^#' "$out/log"
		result ok "$name"
	else
		sed 's/^#* */# /' "$out/log"
		result "not ok" "$name"
	fi
}

program() { # program PREFIX COMMAND...: each "ok NAME" line is a test
	prefix=$1
	shift
	"$@" >"$out/log" 2>&1
	status=$?
	while read -r line; do
		case $line in
		"ok "*) result ok "$prefix: ${line#ok }" ;;
		"not ok "*) result "not ok" "$prefix: ${line#not ok }" ;;
		*) echo "# ${line#"# "}" ;;
		esac
	done <"$out/log"
	if [ $status -eq 4 ]; then
		skip "$prefix" "there is a device"
	elif [ $status -gt 1 ]; then
		result "not ok" "$prefix: exit status $status"
	fi
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# The compiler flags are lists of words.
# shellcheck disable=SC2086
compile() { # compile COMPILER ARGUMENTS...
	compiler=$1
	shift
	"$compiler" $include $warn -pthread "$@"
}

same_names() {
	sed -n 's/^\t\([a-z_]*\);.*/\1/p' "$lib/libtaskshared.map" |
		sort >"$out/in-map"
	sed -n -e '/^static/d' -e '/^\t/d' -e '/^[# ]/d' \
		-e 's/^[a-z].*[ *]\(task[a-z_]*\)(.*/\1/p' \
		-e 's/^extern __thread .* \(task[a-z_]*\)$/\1/p' \
		"$lib/taskshared.h" | sort >"$out/in-header"
	nm -D --defined-only "$built/libtaskshared.so" |
		sed -n 's/.* [A-Z] \(.*\)@@.*/\1/p' | sort >"$out/in-so"
	nm -g --defined-only "$built/libtaskshared.a" |
		sed -n 's/.* [A-Z] //p' | sort >"$out/in-archive"
	diff "$out/in-map" "$out/in-header" &&
		diff "$out/in-map" "$out/in-so" &&
		diff "$out/in-map" "$out/in-archive"
}

# Words that the header adds to the preprocessor beyond what it documents.
few_macros() {
	echo '#include <sys/types.h>
#include <linux/taskshared.h>' >"$out/before.c"
	echo '#include "taskshared.h"' >"$out/after.c"
	# shellcheck disable=SC2086
	for f in before after; do
		cc $include -dM -E "$out/$f.c" | cut -d ' ' -f 2 | sort >"$out/$f"
	done
	comm -13 "$out/before" "$out/after" | grep -v '^TASKSHARED_H$' >"$out/added"
	sed 's/^/# adds /' "$out/added"
	! [ -s "$out/added" ]
}

no_lock() { # no_lock OBJECT
	! objdump -d --no-show-raw-insn "$1" | grep -E '\<(lock|mfence|xchg.*\()'
}

# shellcheck disable=SC2086
installs() {
	root=$out/root
	make -s -C "$lib" install O="$built" DESTDIR="$root" PREFIX=/usr \
		LIBDIR=/usr/lib || return 1
	flags=$(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig \
		PKG_CONFIG_SYSROOT_DIR=$root \
		PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
		pkg-config --cflags --libs taskshared) || return 1
	cc -O2 -pthread -I"$here" -o "$out/installed" "$here/absent_test.c" \
		$flags || return 1
	LD_LIBRARY_PATH=$root/usr/lib "$out/installed" >/dev/null
	status=$?
	[ $status -eq 0 ] || [ $status -eq 4 ] || return 1
	make -s -C "$lib" uninstall O="$built" DESTDIR="$root" PREFIX=/usr \
		LIBDIR=/usr/lib || return 1
	[ -z "$(find "$root" ! -type d)" ]
}

# shellcheck disable=SC2086
readme() { # readme N: the N-th program of the README, as its reader builds it
	"$lib/../tests/readme-example" "$1" >"$out/readme-$1.c" &&
		compile cc -O2 -o "$out/readme-$1" "$out/readme-$1.c" $shared
}

echo "TAP version 14"

# The names and the header.
check "map, header and libraries have the same names" same_names
check "the header adds no macros" few_macros
for cc in cc clang; do
	have $cc || continue
	for std in c11 c17 gnu11; do
		check "header: $cc -std=$std" compile $cc -std=$std -O2 -c \
			-o "$out/header.o" "$here/snippet.c"
	done
done
for cxx in g++ clang++; do
	have $cxx || continue
	for std in c++17 c++20; do
		# shellcheck disable=SC2086
		if check "header: $cxx -std=$std" compile $cxx -std=$std -O2 \
			-o "$out/cxx" "$here/cxx_test.cc" $shared; then
			check "program: $cxx -std=$std" "$out/cxx"
		fi
	done
done

# The cost.
if [ "$(uname -m)" = x86_64 ]; then
	for cc in cc clang; do
		have $cc || continue
		for mode in -fno-pie -fPIE -fPIC; do
			link=-pie
			[ $mode != -fno-pie ] || link=-no-pie
			compile $cc -O2 $mode -c -o "$out/snippet.o" \
				"$here/snippet.c"
			compile $cc -O2 $mode -c -o "$out/count.o" \
				"$here/count_test.c"
			# shellcheck disable=SC2086
			$cc $link -o "$out/count" "$out/count.o" \
				"$out/snippet.o" $shared
			check "cost: $cc $mode, shared" "$out/count"
			check "no locked instruction: $cc $mode" no_lock \
				"$out/snippet.o"
		done
		compile $cc -O2 -fno-pie -static -o "$out/count" \
			"$here/count_test.c" "$here/snippet.c" \
			"$built/libtaskshared.a"
		check "cost: $cc -fno-pie, static" "$out/count"
	done
fi

# No device.
# shellcheck disable=SC2086
compile cc -O2 -o "$out/absent" "$here/absent_test.c" $shared
program "absent" "$out/absent"
compile cc -O2 -static -o "$out/absent-static" "$here/absent_test.c" \
	"$built/libtaskshared.a"
program "absent, static" "$out/absent-static"
compile cc -O2 -o "$out/dlopen" "$here/dlopen_test.c" -ldl
check "dlopen" "$out/dlopen" "$built/libtaskshared.so"

# A device in memory, in place of sys.c.
objects=
for o in attach device errors fork getshared query section stubs; do
	objects="$objects $built/$o.o"
done
# shellcheck disable=SC2086
compile cc -O2 -g -o "$out/fake" "$here/fake_test.c" "$here/fake_sys.c" $objects
program "fake device" "$out/fake"
if [ "$(uname -m)" = x86_64 ]; then
	# shellcheck disable=SC2086
	compile cc -O2 -g -Wl,-z,now -o "$out/step" "$here/step_test.c" \
		"$here/fake_sys.c" "$here/snippet.c" $objects
	program "step by step" "$out/step"
fi

check "README: the program with the library builds" readme 1
check "README: it runs without the module" "$out/readme-1"
check "README: the program without the library builds" readme 2

if have pkg-config; then
	check "install, pkg-config, uninstall" installs
else
	skip "install, pkg-config, uninstall" "no pkg-config"
fi

echo "1..$count"
echo "# $((count - failed)) of $count passed"
[ $failed -eq 0 ]
