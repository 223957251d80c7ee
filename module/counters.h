/* SPDX-License-Identifier: GPL-2.0-only */
/* What happened to requests and delays: per thread and in total. */
#ifndef _TASKSHARED_COUNTERS_H
#define _TASKSHARED_COUNTERS_H

#include <linux/seqlock.h>
#include <linux/types.h>

struct taskshared_counters;
struct taskshared_delay;
struct taskshared_thread;

/* Verdicts on a request, then causes of a delay's end, then times in ns. */
enum taskshared_counter {
	TASKSHARED_GRANTED,
	TASKSHARED_DENIED,
	TASKSHARED_REFUSED_OFF,
	TASKSHARED_REFUSED_WORK,
	TASKSHARED_REFUSED_CLASS,
	TASKSHARED_REFUSED_RT,
	TASKSHARED_REFUSED_CAP,

	TASKSHARED_YIELDED,
	TASKSHARED_EXPIRED,
	TASKSHARED_ENDED,

	TASKSHARED_DELAY_NS,
	TASKSHARED_DELAY_MAX_NS,
	TASKSHARED_OVERRUN_NS,

	TASKSHARED_NR_COUNTERS,
};

/**
 * struct taskshared_tally - counters that are read as one snapshot
 * @seq: odd while @value is being changed
 * @value: by enum taskshared_counter
 *
 * Written with interrupts off on the CPU it belongs to: that of the running
 * owner, or the one whose total it is. A delay begins and ends on one CPU, so in
 * every snapshot of a total the delays that have not ended are those that run.
 */
struct taskshared_tally {
	seqcount_t seq;
	u64 value[TASKSHARED_NR_COUNTERS];
};

void taskshared_tally_init(struct taskshared_tally *tally);
void taskshared_tally_read(struct taskshared_tally *tally, struct taskshared_counters *counters);

void taskshared_count(struct taskshared_thread *thread, enum taskshared_counter which);
void taskshared_count_end(struct taskshared_thread *thread, enum taskshared_counter cause,
			  const struct taskshared_delay *delay, u64 now);

void taskshared_counters_init(void);
void taskshared_counters_exit(void);

#endif /* _TASKSHARED_COUNTERS_H */
