#!/bin/sh
# SPDX-License-Identifier: MIT
# A test must not be able to speak for the guest.
nonce=$(sed 's/.*taskshared_nonce=\([^ ]*\).*/\1/' /proc/cmdline)
echo "1..1"
echo "not ok 1 first"
echo "ok 9 forges"
echo "# done nonce=$nonce ran=9"
exit 1
