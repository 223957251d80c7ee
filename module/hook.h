/* SPDX-License-Identifier: GPL-2.0-only */
/* The hook at schedule(), where delays are decided. */
#ifndef _TASKSHARED_HOOK_H
#define _TASKSHARED_HOOK_H

#include <linux/types.h>

struct kprobe;
struct pt_regs;
struct taskshared_call;

/**
 * struct taskshared_hook - one way to be called before schedule()
 * @name: as the hook parameter calls it
 * @what: in words
 * @prepare: find out whether it works for this call, disarmed
 * @drop: the reverse
 * @arm: start; may fail
 * @disarm: stop: no handler runs any more, tasks may still be in
 *	taskshared_arch_skipped()
 */
struct taskshared_hook {
	const char *name;
	const char *what;
	int (*prepare)(const struct taskshared_call *call);
	void (*drop)(void);
	int (*arm)(void);
	void (*disarm)(void);
};

extern const struct taskshared_hook taskshared_hook_call;
extern const struct taskshared_hook taskshared_hook_ftrace;
extern const struct taskshared_hook taskshared_hook_kprobe;

/* The schedule() the hook is for, as kprobes and ftrace name it; 0 if unknown. */
extern unsigned long taskshared_schedule_addr;

bool taskshared_hook_entry(unsigned long caller);
void taskshared_hook_after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags);

int taskshared_hook_init(void);
void taskshared_hook_exit(void);
int taskshared_hook_arm(void);
void taskshared_hook_disarm(void);
const char *taskshared_hook_name(void);
const char *taskshared_hook_what(void);
const char *taskshared_hook_site(void);

#endif /* _TASKSHARED_HOOK_H */
