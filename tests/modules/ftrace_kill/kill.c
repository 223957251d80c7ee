// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes ftrace give up, as it does when it finds its own records wrong: hooks stay
 * where they are, and none can be added or taken away until the next boot.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

static int __init kill_init(void)
{
	struct kprobe probe = { .symbol_name = "ftrace_kill" };
	void (*kill)(void);
	int ret;

	/* Not exported: a probe is a way to its address. */
	ret = register_kprobe(&probe);
	if (ret)
		return ret;
	kill = (void *)probe.addr;
	unregister_kprobe(&probe);
	kill();
	return 0;
}
module_init(kill_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("makes ftrace give up");
