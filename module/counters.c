// SPDX-License-Identifier: GPL-2.0-only
/* Counters, and their files in debugfs. */

#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/taskshared.h>

#include "cap.h"
#include "counters.h"
#include "health.h"
#include "histogram.h"
#include "pool.h"
#include "probes.h"
#include "slot.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static DEFINE_PER_CPU(struct taskshared_tally, taskshared_totals);
static DEFINE_PER_CPU(struct taskshared_histogram, taskshared_lengths);
static struct dentry *taskshared_debugfs;

void taskshared_tally_init(struct taskshared_tally *tally)
{
	seqcount_init(&tally->seq);
}

static void taskshared_tally_add(struct taskshared_tally *tally, enum taskshared_counter which)
{
	raw_write_seqcount_begin(&tally->seq);
	tally->value[which]++;
	raw_write_seqcount_end(&tally->seq);
}
NOKPROBE_SYMBOL(taskshared_tally_add);

static void taskshared_tally_add_end(struct taskshared_tally *tally, enum taskshared_counter cause,
				     u64 length, u64 overrun)
{
	u64 *value = tally->value;

	raw_write_seqcount_begin(&tally->seq);
	value[cause]++;
	value[TASKSHARED_DELAY_NS] += length;
	value[TASKSHARED_DELAY_MAX_NS] = max(value[TASKSHARED_DELAY_MAX_NS], length);
	value[TASKSHARED_OVERRUN_NS] += overrun;
	raw_write_seqcount_end(&tally->seq);
}
NOKPROBE_SYMBOL(taskshared_tally_add_end);

/**
 * taskshared_count() - count a verdict
 * @thread: current's
 * @which: the verdict
 *
 * Context: interrupts off, NMI-like (trace events may be used there).
 */
void taskshared_count(struct taskshared_thread *thread, enum taskshared_counter which)
{
	taskshared_tally_add(&thread->tally, which);
	taskshared_tally_add(this_cpu_ptr(&taskshared_totals), which);

	switch (which) {
	case TASKSHARED_GRANTED:
		trace_taskshared_grant(thread->tid, thread->delay.deadline - thread->delay.start);
		break;
	case TASKSHARED_DENIED:
		trace_taskshared_deny(thread->tid);
		break;
	default:
		trace_taskshared_refuse(thread->tid, which);
	}
}
NOKPROBE_SYMBOL(taskshared_count);

/**
 * taskshared_count_end() - count the end of a delay
 * @thread: current's
 * @cause: why it ended
 * @delay: the delay
 * @now: the time, in ns of CLOCK_MONOTONIC
 *
 * Context: interrupts off, NMI-like.
 */
void taskshared_count_end(struct taskshared_thread *thread, enum taskshared_counter cause,
			  const struct taskshared_delay *delay, u64 now)
{
	/* The NMI-safe clock may step back by some ns when time is adjusted. */
	u64 length = now > delay->start ? now - delay->start : 0;
	u64 overrun = now > delay->deadline ? now - delay->deadline : 0;

	taskshared_tally_add_end(&thread->tally, cause, length, overrun);
	taskshared_tally_add_end(this_cpu_ptr(&taskshared_totals), cause, length, overrun);
	taskshared_histogram_add(this_cpu_ptr(&taskshared_lengths), length);
	taskshared_histogram_add(taskshared_pool_histogram(thread->pool), length);

	switch (cause) {
	case TASKSHARED_YIELDED:
		trace_taskshared_yield(thread->tid, length, overrun);
		break;
	case TASKSHARED_EXPIRED:
		trace_taskshared_expire(thread->tid, length, overrun);
		break;
	default:
		trace_taskshared_end(thread->tid, length, overrun);
	}
}
NOKPROBE_SYMBOL(taskshared_count_end);

static void taskshared_tally_snapshot(struct taskshared_tally *tally, u64 *value)
{
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&tally->seq);
		memcpy(value, tally->value, sizeof(tally->value));
	} while (read_seqcount_retry(&tally->seq, seq));
}

static void taskshared_counters_fill(const u64 *value, struct taskshared_counters *counters)
{
	counters->granted = value[TASKSHARED_GRANTED];
	counters->denied = value[TASKSHARED_DENIED];
	counters->refused_off = value[TASKSHARED_REFUSED_OFF];
	counters->refused_work = value[TASKSHARED_REFUSED_WORK];
	counters->refused_class = value[TASKSHARED_REFUSED_CLASS];
	counters->refused_rt = value[TASKSHARED_REFUSED_RT];
	counters->refused_cap = value[TASKSHARED_REFUSED_CAP];
	counters->yielded = value[TASKSHARED_YIELDED];
	counters->expired = value[TASKSHARED_EXPIRED];
	counters->ended = value[TASKSHARED_ENDED];
	counters->delay_ns = value[TASKSHARED_DELAY_NS];
	counters->delay_max_ns = value[TASKSHARED_DELAY_MAX_NS];
	counters->overrun_ns = value[TASKSHARED_OVERRUN_NS];

	counters->requested = counters->granted + counters->denied + counters->refused_off +
			      counters->refused_work + counters->refused_class +
			      counters->refused_rt + counters->refused_cap;
	counters->active = counters->granted - counters->yielded - counters->expired -
			   counters->ended;
}

/**
 * taskshared_tally_read() - one consistent snapshot
 * @tally: may be in use
 * @counters: out: all but flags and tid
 *
 * Context: process context.
 */
void taskshared_tally_read(struct taskshared_tally *tally, struct taskshared_counters *counters)
{
	u64 value[TASKSHARED_NR_COUNTERS];

	taskshared_tally_snapshot(tally, value);
	taskshared_counters_fill(value, counters);
}

static void taskshared_totals_read(struct taskshared_counters *counters)
{
	u64 one[TASKSHARED_NR_COUNTERS], sum[TASKSHARED_NR_COUNTERS] = {};
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		taskshared_tally_snapshot(per_cpu_ptr(&taskshared_totals, cpu), one);
		for (i = 0; i < TASKSHARED_NR_COUNTERS; i++) {
			if (i == TASKSHARED_DELAY_MAX_NS)
				sum[i] = max(sum[i], one[i]);
			else
				sum[i] += one[i];
		}
	}
	taskshared_counters_fill(sum, counters);
}

#define TASKSHARED_COUNTER_LINE(name) \
	{ #name, offsetof(struct taskshared_counters, name) }

static const struct {
	const char *name;
	size_t offset;
} taskshared_counter_lines[] = {
	TASKSHARED_COUNTER_LINE(requested),
	TASKSHARED_COUNTER_LINE(granted),
	TASKSHARED_COUNTER_LINE(denied),
	TASKSHARED_COUNTER_LINE(yielded),
	TASKSHARED_COUNTER_LINE(expired),
	TASKSHARED_COUNTER_LINE(ended),
	TASKSHARED_COUNTER_LINE(active),
	TASKSHARED_COUNTER_LINE(refused_off),
	TASKSHARED_COUNTER_LINE(refused_work),
	TASKSHARED_COUNTER_LINE(refused_class),
	TASKSHARED_COUNTER_LINE(refused_rt),
	TASKSHARED_COUNTER_LINE(refused_cap),
	TASKSHARED_COUNTER_LINE(delay_ns),
	TASKSHARED_COUNTER_LINE(delay_max_ns),
	TASKSHARED_COUNTER_LINE(overrun_ns),
};

/* totals: all delays since the module was loaded, one "name value" a line. */
static int totals_show(struct seq_file *m, void *unused)
{
	struct taskshared_counters counters;
	unsigned int i;

	taskshared_totals_read(&counters);
	for (i = 0; i < ARRAY_SIZE(taskshared_counter_lines); i++)
		seq_printf(m, "%s %llu\n", taskshared_counter_lines[i].name,
			   *(u64 *)((void *)&counters + taskshared_counter_lines[i].offset));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(totals);

static void taskshared_threads_line(struct taskshared_thread *thread, void *m)
{
	struct taskshared_counters counters;
	unsigned int i;

	taskshared_tally_read(&thread->tally, &counters);
	seq_printf(m, "%d", thread->tid);
	for (i = 0; i < ARRAY_SIZE(taskshared_counter_lines); i++)
		seq_printf(m, " %llu",
			   *(u64 *)((void *)&counters + taskshared_counter_lines[i].offset));
	seq_putc(m, '\n');
}

/* threads: a line for each thread that has a slot, in the order of the heading. */
static int threads_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	seq_puts(m, "tid");
	for (i = 0; i < ARRAY_SIZE(taskshared_counter_lines); i++)
		seq_printf(m, " %s", taskshared_counter_lines[i].name);
	seq_putc(m, '\n');
	taskshared_pools_walk(taskshared_threads_line, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(threads);

/* state: where the module is hooked in and what it holds. */
static int state_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "cap_ns %u\n", taskshared_cap_ns());
	taskshared_probes_show(m);
	taskshared_health_show(m);
	taskshared_pools_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

/*
 * histogram: a line for each bucket that is not empty: whose delays ("all", or the id
 * of a process that has a pool), from how many microseconds on, below how many, and
 * how many delays.
 */
static int histogram_show(struct seq_file *m, void *unused)
{
	struct taskshared_histogram *sum;
	unsigned int cpu;

	sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	if (!sum)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		taskshared_histogram_merge(sum, per_cpu_ptr(&taskshared_lengths, cpu));
	seq_puts(m, "process from_us below_us delays\n");
	taskshared_histogram_show(sum, "all", m);
	taskshared_pools_histogram_show(m);
	kfree(sum);
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(histogram);

/*
 * histogram_reset: writing 0 empties all of them. A file of its own, because lockdown
 * refuses to read a file in debugfs that can be written.
 */
static int histogram_reset(void *unused, u64 value)
{
	unsigned int cpu;

	if (value)
		return -EINVAL;
	for_each_possible_cpu(cpu)
		taskshared_histogram_reset(per_cpu_ptr(&taskshared_lengths, cpu));
	taskshared_pools_histogram_reset();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(histogram_reset_fops, NULL, histogram_reset, "%llu\n");

/* debugfs is for people: that it may be absent or locked down is no error. */
void taskshared_counters_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		taskshared_tally_init(per_cpu_ptr(&taskshared_totals, cpu));

	taskshared_debugfs = debugfs_create_dir("taskshared", NULL);
	debugfs_create_file("totals", 0400, taskshared_debugfs, NULL, &totals_fops);
	debugfs_create_file("threads", 0400, taskshared_debugfs, NULL, &threads_fops);
	debugfs_create_file("histogram", 0400, taskshared_debugfs, NULL, &histogram_fops);
	debugfs_create_file_unsafe("histogram_reset", 0200, taskshared_debugfs, NULL,
				   &histogram_reset_fops);
	debugfs_create_file("state", 0400, taskshared_debugfs, NULL, &state_fops);
}

void taskshared_counters_exit(void)
{
	debugfs_remove(taskshared_debugfs);
}
