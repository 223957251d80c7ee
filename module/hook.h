/* SPDX-License-Identifier: GPL-2.0-only */
/* The hook at schedule(), where delays are decided. */
#ifndef _TASKSHARED_HOOK_H
#define _TASKSHARED_HOOK_H

#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include "slot.h"

struct taskshared_call;

/**
 * struct taskshared_hook - one way to be called before schedule()
 * @name: as the hook parameter calls it
 * @what: in words
 * @kprobes: it is a kprobe, and so is not called while those are switched off
 * @prepare: find out whether it works for this call, disarmed
 * @drop: the reverse
 * @arm: start; may fail: -EBUSY when something else redirects the function,
 *	-EAGAIN when kprobes are switched off
 * @disarm: stop; may fail, and then handlers still run. A task may be in a
 *	handler or in taskshared_arch_skipped() for some time after.
 */
struct taskshared_hook {
	const char *name;
	const char *what;
	bool kprobes;
	int (*prepare)(const struct taskshared_call *call);
	void (*drop)(void);
	int (*arm)(void);
	int (*disarm)(void);
};

extern const struct taskshared_hook taskshared_hook_call;
extern const struct taskshared_hook taskshared_hook_ftrace;
extern const struct taskshared_hook taskshared_hook_kprobe;

/* The schedule() the hook is for, as kprobes and ftrace name it; 0 if unknown. */
extern unsigned long taskshared_schedule_addr;

bool taskshared_hook_thread(struct taskshared_thread *thread, unsigned long caller);

/**
 * taskshared_hook_entry() - current is about to enter schedule()
 * @caller: where schedule() will return to
 *
 * All that other threads pay. The pointer read is current's own, even if it moves
 * to another CPU meanwhile.
 *
 * Context: task context.
 * Return: true if schedule() is to be skipped.
 */
static __always_inline bool taskshared_hook_entry(unsigned long caller)
{
	struct taskshared_thread *thread = this_cpu_read(taskshared_running);

	return unlikely(thread) && taskshared_hook_thread(thread, caller);
}

int taskshared_hook_init(void);
void taskshared_hook_exit(void);
int taskshared_hook_arm(void);
int taskshared_hook_disarm(void);
bool taskshared_hook_needs_kprobes(void);
const char *taskshared_hook_name(void);
const char *taskshared_hook_what(void);
const char *taskshared_hook_site(void);

#endif /* _TASKSHARED_HOOK_H */
