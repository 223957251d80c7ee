#!/bin/sh
# SPDX-License-Identifier: MIT
# A warning with a backtrace: the guest panics at once.
insmod /taskshared.ko warn=1
