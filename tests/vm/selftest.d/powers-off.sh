#!/bin/sh
# SPDX-License-Identifier: MIT
# A guest that ends in good order, but too early.
poweroff -f
