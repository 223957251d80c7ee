// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for the real module when the guest harness is tested: it does
 * nothing, or on demand goes wrong in a way that the harness must notice.
 */
#include <linux/bug.h>
#include <linux/module.h>

static bool warn;
module_param(warn, bool, 0444);
MODULE_PARM_DESC(warn, "make the kernel print a warning with a backtrace");

static int __init stand_in_init(void)
{
	WARN(warn, "taskshared stand-in: a warning on purpose\n");
	return 0;
}
module_init(stand_in_init);

static void __exit stand_in_exit(void)
{
}
module_exit(stand_in_exit);

MODULE_LICENSE("GPL");
MODULE_VERSION("0");
MODULE_DESCRIPTION("stand-in that tests the guest harness");
