/* SPDX-License-Identifier: GPL-2.0-only */
/* What keeps the module from granting delays though it is loaded. */
#ifndef _TASKSHARED_HEALTH_H
#define _TASKSHARED_HEALTH_H

#include <linux/percpu.h>
#include <linux/types.h>

struct seq_file;

/*
 * Requests on this CPU that the hook was not called for, since it was last called
 * for one. Written by that CPU with interrupts off.
 */
DECLARE_PER_CPU(unsigned int, taskshared_lost);

void taskshared_health_lost(void);
void taskshared_health_restart(void);
u32 taskshared_health(void);
u32 taskshared_health_switched_off(void);
void taskshared_health_show(struct seq_file *m);
const char *taskshared_health_text(u32 health);
void taskshared_health_init(void);

#endif /* _TASKSHARED_HEALTH_H */
