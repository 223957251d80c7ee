#!/bin/sh
# SPDX-License-Identifier: MIT
# Two cases, one of them skipped.
echo "TAP version 13"
echo "1..2"
echo "ok 1 first"
echo "ok 2 second # SKIP on purpose"
