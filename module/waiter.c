// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does a task of a class above fair wait for this CPU?
 *
 * The scheduler knows by two counts of the run queue, that of all tasks and that of
 * fair ones; pick_next_task() compares them to take its shortest way. Here they are
 * compared too: whoever waits, however it came to wait (wake-up, migration,
 * inheritance, a change of class, the end of throttling), is in the one count and
 * not in the other. The counts are read where BTF says they are.
 *
 * They are read without the run queue's lock, which may be held when a breakpoint
 * probe decides. What the scheduler does for such a task, and what the decision does:
 *
 *	scheduler, maybe on another CPU		decision
 *	count the task				clear need-resched
 *	set need-resched; if it was not set	full barrier
 *	  already, interrupt that CPU		read the counts
 *
 * If the scheduler found need-resched set, it was not cleared yet, so the counts
 * are read later and tell. If not, the interrupt leads to the next decision, and
 * that ends the delay. The scheduler has no barrier of its own between its two
 * steps, and the two counts are not read at once: while another CPU queues a fair
 * task, that is in one count and not yet in the other. For what may slip through,
 * the interrupt that starts the cap timer looks again; what slips through that, too,
 * waits for the cap.
 *
 * A task that a BPF scheduler runs is in no count but the first: it is taken for
 * urgent. So is the fair server, by which the deadline class of 6.12 serves fair
 * tasks that real-time ones have starved. With core scheduling a task may wait on
 * the sibling until this CPU has switched, so in its use every request is refused.
 */

#include <linux/btf.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/utsname.h>

#include "btf.h"
#include "waiter.h"

/* Offsets in bytes. */
static struct {
	int rq;		/* in struct cfs_rq, the rest in struct rq */
	int all;
	int fair;
	int core;	/* negative: the kernel has no core scheduling */
	int next_class;	/* negative: the scheduler does not remember it */
} taskshared_rq __ro_after_init;

static unsigned int taskshared_rq_read(const void *rq, int offset)
{
	return READ_ONCE(*(const unsigned int *)(rq + offset));
}
NOKPROBE_SYMBOL(taskshared_rq_read);

/**
 * taskshared_waiter_urgent() - may a task above the fair class wait for this CPU?
 *
 * Context: interrupts off, NMI-like; current is of the fair class.
 */
bool taskshared_waiter_urgent(void)
{
	/* The group's queue on this CPU, which is not freed while interrupts are off. */
	const void *cfs_rq = READ_ONCE(current->se.cfs_rq);
	const void *rq = *(const void *const *)(cfs_rq + taskshared_rq.rq);

	if (taskshared_rq_read(rq, taskshared_rq.all) !=
	    taskshared_rq_read(rq, taskshared_rq.fair))
		return true;
	/*
	 * The highest class that asked for the CPU since the last pass: another task of it
	 * would come without asking again, though the first one may be gone.
	 */
	if (taskshared_rq.next_class >= 0 &&
	    READ_ONCE(*(const void *const *)(rq + taskshared_rq.next_class)) !=
	    READ_ONCE(current->sched_class))
		return true;
	return taskshared_rq.core >= 0 && taskshared_rq_read(rq, taskshared_rq.core);
}
NOKPROBE_SYMBOL(taskshared_waiter_urgent);

static const char *__init taskshared_rq_error(int error)
{
	switch (error) {
	case -ENODATA:
		return "no description of types, CONFIG_DEBUG_INFO_BTF";
	case -EOPNOTSUPP:
		return "the description of types has a kind that this version does not know";
	case -ENOTUNIQ:
		return "it is in more than one place";
	case -EINVAL:
		return "its type is another one";
	default:
		return "no such member";
	}
}

/* Offset of a member of that kind, or an error, which is reported. */
static int __init taskshared_rq_find(const char *structure, const char *member, u32 kind)
{
	int offset = taskshared_btf_member(structure, member, kind);

	if (offset < 0)
		pr_err("Linux %s: %s.%s not found (%s): real-time tasks that wait could not be seen\n",
		       utsname()->release, structure, member, taskshared_rq_error(offset));
	return offset;
}

/* The same for a member that not every kernel has: no error if it is not there. */
static int __init taskshared_rq_find_optional(const char *structure, const char *member, u32 kind)
{
	int offset = taskshared_btf_member(structure, member, kind);

	return offset == -ENOENT ? offset : taskshared_rq_find(structure, member, kind);
}

static bool __init taskshared_rq_complete(void)
{
	return taskshared_rq.rq >= 0 && taskshared_rq.all >= 0 && taskshared_rq.fair >= 0 &&
	       (taskshared_rq.core >= 0 || !IS_ENABLED(CONFIG_SCHED_CORE)) &&
	       (taskshared_rq.next_class >= 0 || taskshared_rq.next_class == -ENOENT);
}

int __init taskshared_waiter_init(void)
{
	int cfs = taskshared_rq_find("rq", "cfs", BTF_KIND_STRUCT);

	/* 6.14, and stable releases after it, have the new name. */
	taskshared_rq.fair = taskshared_rq_find_optional("cfs_rq", "h_nr_queued", BTF_KIND_INT);
	if (taskshared_rq.fair == -ENOENT)
		taskshared_rq.fair = taskshared_rq_find("cfs_rq", "h_nr_running", BTF_KIND_INT);
	taskshared_rq.rq = taskshared_rq_find("cfs_rq", "rq", BTF_KIND_PTR);
	taskshared_rq.all = taskshared_rq_find("rq", "nr_running", BTF_KIND_INT);
	taskshared_rq.core = -ENOENT;
	if (IS_ENABLED(CONFIG_SCHED_CORE))
		taskshared_rq.core = taskshared_rq_find("rq", "core_enabled", BTF_KIND_INT);
	taskshared_rq.next_class = taskshared_rq_find_optional("rq", "next_class", BTF_KIND_PTR);
	if (cfs < 0 || !taskshared_rq_complete())
		return -ENOENT;

	taskshared_rq.fair += cfs;
	return 0;
}
