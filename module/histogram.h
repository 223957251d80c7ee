/* SPDX-License-Identifier: GPL-2.0-only */
/* How long delays were. */
#ifndef _TASKSHARED_HISTOGRAM_H
#define _TASKSHARED_HISTOGRAM_H

#include <linux/atomic.h>
#include <linux/types.h>

struct seq_file;

/*
 * One bucket for each microsecond up to the greatest cap, then, for delays that went
 * on in the kernel, one for each power of two of microseconds: 51 to 63, 64 to 127
 * and so on; the last one has no end.
 */
#define TASKSHARED_HISTOGRAM_FINE	51
#define TASKSHARED_HISTOGRAM_COARSE	12
#define TASKSHARED_HISTOGRAM_BUCKETS	(TASKSHARED_HISTOGRAM_FINE + TASKSHARED_HISTOGRAM_COARSE)

/**
 * struct taskshared_histogram - delays by length
 * @count: how many, by bucket; added to on any CPU, read and reset in process context
 */
struct taskshared_histogram {
	atomic_long_t count[TASKSHARED_HISTOGRAM_BUCKETS];
};

void taskshared_histogram_add(struct taskshared_histogram *histogram, u64 length);
void taskshared_histogram_merge(struct taskshared_histogram *sum,
				const struct taskshared_histogram *histogram);
void taskshared_histogram_reset(struct taskshared_histogram *histogram);
void taskshared_histogram_show(const struct taskshared_histogram *histogram, const char *whose,
			       struct seq_file *m);

#endif /* _TASKSHARED_HISTOGRAM_H */
