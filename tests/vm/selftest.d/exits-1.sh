#!/bin/sh
# SPDX-License-Identifier: MIT
echo "going down"
exit 1
