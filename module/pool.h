/* SPDX-License-Identifier: GPL-2.0-only */
/* A process's pool of pages of slots. */
#ifndef _TASKSHARED_POOL_H
#define _TASKSHARED_POOL_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct seq_file;
struct taskshared_counters;
struct taskshared_histogram;
struct taskshared_pool;
struct taskshared_thread;

/* Slots in a page, and pages a pool may have: more threads than a pid space. */
#define TASKSHARED_SLOTS_PER_PAGE	(PAGE_SIZE / TASKSHARED_SLOT_SIZE)
#define TASKSHARED_POOL_MAX_PAGES	4096

struct taskshared_pool *taskshared_pool_open(void);
void taskshared_pool_close(struct taskshared_pool *pool);
void taskshared_pool_hold(struct taskshared_pool *pool);
void taskshared_pool_put(struct taskshared_pool *pool);
bool taskshared_pool_is_current(const struct taskshared_pool *pool);

int taskshared_pool_take(struct taskshared_pool *pool, struct taskshared_thread *thread);
void taskshared_pool_give(struct taskshared_pool *pool, struct taskshared_thread *thread);
int taskshared_pool_counters(struct taskshared_pool *pool, struct taskshared_counters *counters);
struct taskshared_histogram *taskshared_pool_histogram(struct taskshared_pool *pool);
struct page *taskshared_pool_page(struct taskshared_pool *pool, pgoff_t index);

typedef void (*taskshared_thread_fn)(struct taskshared_thread *thread, void *arg);
void taskshared_pools_walk(taskshared_thread_fn fn, void *arg);
void taskshared_pools_histogram_show(struct seq_file *m);
void taskshared_pools_histogram_reset(void);
void taskshared_pools_show(struct seq_file *m);

#endif /* _TASKSHARED_POOL_H */
