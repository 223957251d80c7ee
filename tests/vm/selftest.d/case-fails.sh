#!/bin/sh
# SPDX-License-Identifier: MIT
# The exit code lies: the failing case has to count.
echo "1..2"
echo "ok 1 first"
echo "not ok 2 second # on purpose"
exit 0
