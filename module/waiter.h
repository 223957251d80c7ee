/* SPDX-License-Identifier: GPL-2.0-only */
/* Real-time, deadline and stop tasks that wait for a CPU: never delayed. */
#ifndef _TASKSHARED_WAITER_H
#define _TASKSHARED_WAITER_H

#include <linux/types.h>

bool taskshared_waiter_urgent(void);
int taskshared_waiter_init(void);

#endif /* _TASKSHARED_WAITER_H */
