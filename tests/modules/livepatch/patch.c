// SPDX-License-Identifier: GPL-2.0-only
/*
 * A livepatch of schedule() that changes nothing: the new function goes on in the old
 * one, behind the place where ftrace sits. For guests that do not enforce IBT, as the
 * old function does not expect to be entered there.
 */
#include <linux/kprobes.h>
#include <linux/livepatch.h>
#include <linux/module.h>

asmlinkage void livepatch_schedule(void);

/* The rest of schedule(). */
unsigned long livepatch_rest;

static struct klp_func funcs[] = {
	{ .old_name = "schedule", .new_func = livepatch_schedule },
	{ }
};

static struct klp_object objs[] = {
	{ .funcs = funcs },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objs,
};

static int __init livepatch_init(void)
{
	struct kprobe probe = { .symbol_name = "schedule" };
	int ret;

	/* A probe is put where ftrace sits. */
	ret = register_kprobe(&probe);
	if (ret)
		return ret;
	livepatch_rest = (unsigned long)probe.addr + MCOUNT_INSN_SIZE;
	unregister_kprobe(&probe);
	return klp_enable_patch(&patch);
}
module_init(livepatch_init);

static void __exit livepatch_exit(void)
{
}
module_exit(livepatch_exit);

MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
MODULE_DESCRIPTION("livepatch of schedule() that changes nothing");
