/* SPDX-License-Identifier: GPL-2.0-only */
/* Real-time, deadline and stop tasks that wait for a CPU: never delayed. */
#ifndef _TASKSHARED_WAITER_H
#define _TASKSHARED_WAITER_H

#include <linux/types.h>

struct task_struct;
struct taskshared_thread;

/* Tracepoint probes, registered while the hooks are armed. */
void taskshared_waiter_wakeup(void *data, struct task_struct *task);
void taskshared_waiter_migrate(void *data, struct task_struct *task, int cpu);
void taskshared_waiter_boost(void *data, struct task_struct *task, struct task_struct *donor);

void taskshared_waiter_reset(struct taskshared_thread *thread);
void taskshared_waiter_adopt(struct taskshared_thread *thread);
bool taskshared_waiter_urgent(const struct taskshared_thread *thread);
void taskshared_waiter_watch(bool delayed);
void taskshared_waiter_init(void);
void taskshared_waiter_exit(void);

#endif /* _TASKSHARED_WAITER_H */
