/* SPDX-License-Identifier: GPL-2.0-only */
/* sched_yield() ends a delay. */
#ifndef _TASKSHARED_YIELD_H
#define _TASKSHARED_YIELD_H

int taskshared_yield_init(void);
void taskshared_yield_exit(void);
int taskshared_yield_arm(void);
int taskshared_yield_disarm(void);

#endif /* _TASKSHARED_YIELD_H */
