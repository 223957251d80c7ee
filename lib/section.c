// SPDX-License-Identifier: MIT
/*
 * The rare halves of taskshared_begin() and taskshared_end(), and yield.
 */
#include "internal.h"

/*
 * begin() found a negative count: the thread has not tried to attach yet, or it
 * ended more sections than it began. In both cases this is an outermost section.
 */
void section_begin(void)
{
	struct taskshared_tls *t = &taskshared_tls;

	if (t->nest < NEST_UNATTACHED / 2)
		taskshared_attach();
	t->nest = 0;
	*t->word = TASK_PREEMPT_DELAY_REQ;
}

/*
 * end() found that its request had been answered: a delay was granted (then the
 * CPU goes back now) or denied, or the thread lost its slot inside the section.
 */
void section_end(void)
{
	struct taskshared_tls *t = &taskshared_tls;

	*t->word = 0;
	if (t->slot)
		taskshared_yield();
	else if (t->nest == NEST_OUTSIDE)
		t->nest = NEST_UNATTACHED;
}

#ifndef TASKSHARED_STUBS
void taskshared_begin_slow(void)
{
	section_begin();
}

void taskshared_end_slow(void)
{
	section_end();
}
#endif

int taskshared_yield(void)
{
	if (!taskshared_tls.slot)
		return 0;
	return device_ioctl(TASKSHARED_IOC_YIELD, NULL);
}
