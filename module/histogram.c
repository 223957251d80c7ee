// SPDX-License-Identifier: GPL-2.0-only
/* How long delays were, to the microsecond. */

#include <linux/kprobes.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "histogram.h"

/* The first bucket of the coarse ones is the rest of this power of two. */
#define TASKSHARED_COARSE_LOG2	5

/**
 * taskshared_histogram_add() - count a delay
 * @histogram: where
 * @length: in ns
 *
 * Context: interrupts off, NMI-like.
 */
void taskshared_histogram_add(struct taskshared_histogram *histogram, u64 length)
{
	u64 us = div_u64(length, NSEC_PER_USEC);
	unsigned int bucket;

	if (us < TASKSHARED_HISTOGRAM_FINE)
		bucket = us;
	else
		bucket = min_t(unsigned int,
			       TASKSHARED_HISTOGRAM_FINE + ilog2(us) - TASKSHARED_COARSE_LOG2,
			       TASKSHARED_HISTOGRAM_BUCKETS - 1);
	atomic_long_inc(&histogram->count[bucket]);
}
NOKPROBE_SYMBOL(taskshared_histogram_add);

void taskshared_histogram_merge(struct taskshared_histogram *sum,
				const struct taskshared_histogram *histogram)
{
	unsigned int i;

	for (i = 0; i < TASKSHARED_HISTOGRAM_BUCKETS; i++)
		atomic_long_add(atomic_long_read(&histogram->count[i]), &sum->count[i]);
}

/* Delays that end meanwhile may be counted or not. */
void taskshared_histogram_reset(struct taskshared_histogram *histogram)
{
	unsigned int i;

	for (i = 0; i < TASKSHARED_HISTOGRAM_BUCKETS; i++)
		atomic_long_set(&histogram->count[i], 0);
}

/* The shortest delay in a bucket, in microseconds. */
static unsigned int taskshared_bucket_start(unsigned int bucket)
{
	if (bucket <= TASKSHARED_HISTOGRAM_FINE)
		return bucket;
	return 1U << (bucket - TASKSHARED_HISTOGRAM_FINE + TASKSHARED_COARSE_LOG2);
}

/**
 * taskshared_histogram_show() - a line for each bucket that is not empty
 * @histogram: the histogram
 * @whose: first column
 * @m: where to
 */
void taskshared_histogram_show(const struct taskshared_histogram *histogram, const char *whose,
			       struct seq_file *m)
{
	unsigned int i;
	long count;

	for (i = 0; i < TASKSHARED_HISTOGRAM_BUCKETS; i++) {
		count = atomic_long_read(&histogram->count[i]);
		if (!count)
			continue;
		seq_printf(m, "%s %u ", whose, taskshared_bucket_start(i));
		if (i < TASKSHARED_HISTOGRAM_BUCKETS - 1)
			seq_printf(m, "%u", taskshared_bucket_start(i + 1));
		else
			seq_putc(m, '-');
		seq_printf(m, " %ld\n", count);
	}
}
