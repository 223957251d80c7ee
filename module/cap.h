/* SPDX-License-Identifier: GPL-2.0-only */
/* The cap: the longest a delay may last, and the timer that enforces it. */
#ifndef _TASKSHARED_CAP_H
#define _TASKSHARED_CAP_H

#include <linux/types.h>

u32 taskshared_cap_ns(void);
bool taskshared_cap_arm(u64 deadline);
bool taskshared_cap_failed(void);
int taskshared_cap_init(void);
void taskshared_cap_exit(void);

#endif /* _TASKSHARED_CAP_H */
