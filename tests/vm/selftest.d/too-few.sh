#!/bin/sh
# SPDX-License-Identifier: MIT
# Ends early and says 0.
echo "1..3"
echo "ok 1 first"
exit 0
