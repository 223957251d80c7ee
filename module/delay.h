/* SPDX-License-Identifier: GPL-2.0-only */
/* When a thread may run on although the scheduler asks for the CPU. */
#ifndef _TASKSHARED_DELAY_H
#define _TASKSHARED_DELAY_H

#include <linux/types.h>

#include "counters.h"

struct taskshared_thread;

/**
 * struct taskshared_delay - the delay of one thread
 * @active: a delay is running: from the decision to the next pass through
 *	the scheduler
 * @expired: the cap was reached; the scheduler has been asked for
 * @owed: a delay was cut, and the pass through the scheduler is still to come
 * @seen: the coming pass through the scheduler is one that a hook decided on
 * @start: when it was granted, in ns of CLOCK_MONOTONIC
 * @deadline: when the cap is reached
 * @busy: any of the flags, read as one: if none is set, a pass through the
 *	scheduler that nobody decided on has nothing to do
 *
 * Touched by the owner's CPU alone, with interrupts off. A delay never moves to
 * another CPU: a migration is a pass through the scheduler.
 */
struct taskshared_delay {
	union {
		struct {
			bool active;
			bool expired;
			bool owed;
			bool seen;
		};
		u32 busy;
	};
	u64 start;
	u64 deadline;
};

bool taskshared_delay_decide(struct taskshared_thread *thread);
void taskshared_delay_pass(struct taskshared_thread *thread);
bool taskshared_delay_cut(struct taskshared_thread *thread, enum taskshared_counter cause);
void taskshared_delay_confirm(struct taskshared_thread *thread);
bool taskshared_delay_expire(struct taskshared_thread *thread);
int taskshared_delay_init(void);

#endif /* _TASKSHARED_DELAY_H */
