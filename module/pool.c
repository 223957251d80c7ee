// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools. A pool belongs to an mm and lives while a file of it is open or a
 * thread has a slot in it; a mapping holds its file.
 *
 * Locks, outer to inner: mmap_lock, taskshared_pools_lock, pool->lock. All are
 * mutexes or sleep; nobody takes them from a probe, a callback or an interrupt.
 */

#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/taskshared.h>
#include <linux/xarray.h>

#include "histogram.h"
#include "pool.h"
#include "slot.h"
#include "user.h"

/**
 * struct taskshared_page - a page of slots
 * @used: bit n: slot n is taken
 * @roomy: in pool->roomy while a slot is free
 * @index: the page's number in the pool
 * @slots: the page itself
 * @threads: who has slot n
 */
struct taskshared_page {
	DECLARE_BITMAP(used, TASKSHARED_SLOTS_PER_PAGE);
	struct list_head roomy;
	u32 index;
	struct task_sharedinfo *slots;
	struct taskshared_thread *threads[TASKSHARED_SLOTS_PER_PAGE];
};

/**
 * struct taskshared_pool - a process's slots
 * @node: in taskshared_pools
 * @ref: one per open file, one per slot
 * @mm: the process; a reference to the structure (mmgrab) keeps its address
 *	from being used again while the pool lives
 * @user: who pays
 * @tgid: the process that opened first, for people to read
 * @histogram: how long delays of its threads were
 * @lock: inner to taskshared_pools_lock and mmap_lock
 * @files: open files; while there are any no page goes away
 * @slots: slots taken
 * @pages: struct taskshared_page by number; read without the lock by who holds
 *	a file open
 * @nr_pages: how many
 * @roomy: pages with a free slot
 * @growing: held by the one thread that adds a page; outside @lock
 */
struct taskshared_pool {
	struct hlist_node node;
	struct kref ref;
	struct mm_struct *mm;
	struct taskshared_user *user;
	pid_t tgid;
	struct taskshared_histogram histogram;

	struct mutex lock; /* protects all below */
	unsigned int files;
	unsigned int slots;
	struct xarray pages;
	unsigned int nr_pages;
	struct list_head roomy;

	struct mutex growing; /* see above */
};

/* All pools by mm. A pool in here has at least one reference. */
static DEFINE_HASHTABLE(taskshared_pools, 8);
static DEFINE_MUTEX(taskshared_pools_lock);

static void taskshared_page_free(struct taskshared_pool *pool, struct taskshared_page *page)
{
	free_page((unsigned long)page->slots);
	kfree(page);
	taskshared_user_uncharge_page(pool->user);
}

/* Without the lock: this may have to wait for memory, and who needs none must not. */
static struct taskshared_page *taskshared_page_alloc(struct taskshared_pool *pool)
{
	struct taskshared_page *page;

	if (taskshared_user_charge_page(pool->user))
		return NULL;
	page = kzalloc(sizeof(*page), GFP_KERNEL_ACCOUNT);
	if (!page)
		goto uncharge;
	page->slots = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!page->slots)
		goto free;
	return page;
free:
	kfree(page);
uncharge:
	taskshared_user_uncharge_page(pool->user);
	return NULL;
}

static int taskshared_page_add(struct taskshared_pool *pool, struct taskshared_page *page)
{
	struct xa_limit limit = XA_LIMIT(0, TASKSHARED_POOL_MAX_PAGES - 1);
	int ret;

	lockdep_assert_held(&pool->lock);

	ret = xa_alloc(&pool->pages, &page->index, page, limit, GFP_KERNEL);
	if (ret)
		return ret == -EBUSY ? -ENOSPC : ret;
	list_add(&page->roomy, &pool->roomy);
	pool->nr_pages++;
	return 0;
}

static void taskshared_page_del(struct taskshared_pool *pool, struct taskshared_page *page)
{
	lockdep_assert_held(&pool->lock);
	WARN_ON_ONCE(pool->files || !bitmap_empty(page->used, TASKSHARED_SLOTS_PER_PAGE));

	xa_erase(&pool->pages, page->index);
	list_del(&page->roomy);
	pool->nr_pages--;
	taskshared_page_free(pool, page);
}

static bool taskshared_pool_lock_if_room(struct taskshared_pool *pool)
{
	mutex_lock(&pool->lock);
	if (!list_empty(&pool->roomy))
		return true;
	mutex_unlock(&pool->lock);
	return false;
}

/*
 * One at a time: a page that a second thread takes for a moment may be the one that the
 * limits do not allow, though the first one's is enough for both.
 * Returns with the pool's lock held if there is room.
 */
static int taskshared_pool_grow(struct taskshared_pool *pool)
{
	struct taskshared_page *page;
	int ret;

	lockdep_assert_held(&pool->growing);

	if (taskshared_pool_lock_if_room(pool))
		return 0;
	page = taskshared_page_alloc(pool);
	if (!page)
		return -ENOMEM;

	mutex_lock(&pool->lock);
	ret = taskshared_page_add(pool, page);
	if (ret) {
		mutex_unlock(&pool->lock);
		taskshared_page_free(pool, page);
	}
	return ret;
}

/* Returns with the lock held if there is room. */
static int taskshared_pool_lock_with_room(struct taskshared_pool *pool)
{
	int ret;

	if (taskshared_pool_lock_if_room(pool))
		return 0;
	mutex_lock(&pool->growing);
	ret = taskshared_pool_grow(pool);
	mutex_unlock(&pool->growing);
	return ret;
}

/**
 * taskshared_pool_take() - give a thread a slot
 * @pool: the pool
 * @thread: gets info and index
 *
 * Context: process context, perhaps under mmap_lock.
 * Return: 0, -ENOMEM, -ENOSPC, or -EDQUOT.
 */
int taskshared_pool_take(struct taskshared_pool *pool, struct taskshared_thread *thread)
{
	struct taskshared_page *page;
	unsigned int bit;
	int ret;

	ret = taskshared_user_charge_slot(pool->user);
	if (ret)
		return ret;
	ret = taskshared_pool_lock_with_room(pool);
	if (ret) {
		taskshared_user_uncharge_slot(pool->user);
		return ret;
	}
	page = list_first_entry(&pool->roomy, struct taskshared_page, roomy);
	bit = find_first_zero_bit(page->used, TASKSHARED_SLOTS_PER_PAGE);
	__set_bit(bit, page->used);
	if (bitmap_full(page->used, TASKSHARED_SLOTS_PER_PAGE))
		list_del_init(&page->roomy);
	page->threads[bit] = thread;
	pool->slots++;

	thread->index = page->index * TASKSHARED_SLOTS_PER_PAGE + bit;
	thread->info = page->slots + bit;
	/* The process can write to free slots too. */
	memset(thread->info, 0, sizeof(*thread->info));
	mutex_unlock(&pool->lock);
	return 0;
}

/**
 * taskshared_pool_give() - take a thread's slot back
 * @pool: the pool
 * @thread: no longer seen by the scheduler
 *
 * Context: process context.
 */
void taskshared_pool_give(struct taskshared_pool *pool, struct taskshared_thread *thread)
{
	unsigned int bit = thread->index % TASKSHARED_SLOTS_PER_PAGE;
	struct taskshared_page *page;

	mutex_lock(&pool->lock);
	page = xa_load(&pool->pages, thread->index / TASKSHARED_SLOTS_PER_PAGE);
	/* In one store, for who looks at it; then the rest. */
	WRITE_ONCE(thread->info->tid, 0);
	memset(thread->info, 0, sizeof(*thread->info));
	page->threads[bit] = NULL;
	pool->slots--;
	if (bitmap_full(page->used, TASKSHARED_SLOTS_PER_PAGE))
		list_add(&page->roomy, &pool->roomy);
	__clear_bit(bit, page->used);
	if (!pool->files && bitmap_empty(page->used, TASKSHARED_SLOTS_PER_PAGE))
		taskshared_page_del(pool, page);
	mutex_unlock(&pool->lock);
	taskshared_user_uncharge_slot(pool->user);
}

/**
 * taskshared_pool_page() - the page that a mapping shows at @index
 * @pool: the pool
 * @index: number of the page
 *
 * Context: the caller holds a file of the pool open, so the page stays.
 * Return: the page, or NULL if the pool has none there.
 */
struct page *taskshared_pool_page(struct taskshared_pool *pool, pgoff_t index)
{
	struct taskshared_page *page = xa_load(&pool->pages, index);

	return page ? virt_to_page(page->slots) : NULL;
}

/**
 * taskshared_pool_counters() - counters of one of the pool's threads
 * @pool: the pool
 * @counters: in: tid, out: the counters
 *
 * Return: 0, or -ESRCH if no such thread has a slot.
 */
int taskshared_pool_counters(struct taskshared_pool *pool, struct taskshared_counters *counters)
{
	struct taskshared_page *page;
	unsigned long index;
	unsigned int bit;
	int ret = -ESRCH;

	mutex_lock(&pool->lock);
	xa_for_each(&pool->pages, index, page) {
		for_each_set_bit(bit, page->used, TASKSHARED_SLOTS_PER_PAGE) {
			if (page->threads[bit]->tid != counters->tid)
				continue;
			taskshared_tally_read(&page->threads[bit]->tally, counters);
			ret = 0;
			goto unlock;
		}
	}
unlock:
	mutex_unlock(&pool->lock);
	return ret;
}

static struct taskshared_pool *taskshared_pool_find(const struct mm_struct *mm)
{
	struct taskshared_pool *pool;

	lockdep_assert_held(&taskshared_pools_lock);
	hash_for_each_possible(taskshared_pools, pool, node, (unsigned long)mm)
		if (pool->mm == mm)
			return pool;
	return NULL;
}

static struct taskshared_pool *taskshared_pool_alloc(void)
{
	struct taskshared_pool *pool;

	pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return NULL;
	pool->user = taskshared_user_get();
	if (!pool->user) {
		kfree(pool);
		return NULL;
	}
	kref_init(&pool->ref);
	mmgrab(current->mm);
	pool->mm = current->mm;
	pool->tgid = task_tgid_nr(current);
	mutex_init(&pool->lock);
	mutex_init(&pool->growing);
	xa_init_flags(&pool->pages, XA_FLAGS_ALLOC);
	INIT_LIST_HEAD(&pool->roomy);
	/* The file that is being opened holds the module already. */
	__module_get(THIS_MODULE);
	return pool;
}

static void taskshared_pool_free(struct taskshared_pool *pool)
{
	taskshared_user_put(pool->user);
	mmdrop(pool->mm);
	kfree(pool);
	/* Module exit waits until the caller, too, is out of the module's text. */
	module_put(THIS_MODULE);
}

/* With the last reference gone there are no files and no slots, so no pages. */
static void taskshared_pool_release(struct kref *ref)
{
	struct taskshared_pool *pool = container_of(ref, struct taskshared_pool, ref);

	lockdep_assert_held(&taskshared_pools_lock);
	WARN_ON_ONCE(pool->nr_pages);

	hash_del(&pool->node);
	mutex_unlock(&taskshared_pools_lock);
	taskshared_pool_free(pool);
}

void taskshared_pool_hold(struct taskshared_pool *pool)
{
	kref_get(&pool->ref);
}

void taskshared_pool_put(struct taskshared_pool *pool)
{
	kref_put_mutex(&pool->ref, taskshared_pool_release, &taskshared_pools_lock);
}

/**
 * taskshared_pool_open() - the pool of the calling process, for a new file
 *
 * Context: process context.
 * Return: the pool, to be given back by taskshared_pool_close(), or an ERR_PTR().
 */
struct taskshared_pool *taskshared_pool_open(void)
{
	struct taskshared_pool *pool, *fresh;

	if (!current->mm)
		return ERR_PTR(-EINVAL);

	/* Not under the lock: who waits for memory must not hold up others. */
	fresh = taskshared_pool_alloc();
	if (!fresh)
		return ERR_PTR(-ENOMEM);

	mutex_lock(&taskshared_pools_lock);
	pool = taskshared_pool_find(current->mm);
	if (pool) {
		taskshared_pool_hold(pool);
	} else {
		pool = fresh;
		hash_add(taskshared_pools, &pool->node, (unsigned long)pool->mm);
	}
	mutex_unlock(&taskshared_pools_lock);
	if (pool != fresh)
		taskshared_pool_free(fresh);

	mutex_lock(&pool->lock);
	pool->files++;
	mutex_unlock(&pool->lock);
	return pool;
}

/* A file of the pool is closed, and no mapping of it is left. */
void taskshared_pool_close(struct taskshared_pool *pool)
{
	struct taskshared_page *page, *next;

	mutex_lock(&pool->lock);
	if (!--pool->files) {
		list_for_each_entry_safe(page, next, &pool->roomy, roomy)
			if (bitmap_empty(page->used, TASKSHARED_SLOTS_PER_PAGE))
				taskshared_page_del(pool, page);
	}
	mutex_unlock(&pool->lock);
	taskshared_pool_put(pool);
}

struct taskshared_histogram *taskshared_pool_histogram(struct taskshared_pool *pool)
{
	return &pool->histogram;
}

bool taskshared_pool_is_current(const struct taskshared_pool *pool)
{
	return pool->mm == current->mm;
}

/* Call @fn for every pool, with its lock held. */
static void taskshared_pools_each(void (*fn)(struct taskshared_pool *pool, void *arg), void *arg)
{
	struct taskshared_pool *pool;
	unsigned int bkt;

	mutex_lock(&taskshared_pools_lock);
	hash_for_each(taskshared_pools, bkt, pool, node) {
		mutex_lock(&pool->lock);
		fn(pool, arg);
		mutex_unlock(&pool->lock);
	}
	mutex_unlock(&taskshared_pools_lock);
}

struct taskshared_walk {
	taskshared_thread_fn fn;
	void *arg;
};

static void taskshared_pool_walk(struct taskshared_pool *pool, void *arg)
{
	const struct taskshared_walk *walk = arg;
	struct taskshared_page *page;
	unsigned long index;
	unsigned int bit;

	xa_for_each(&pool->pages, index, page)
		for_each_set_bit(bit, page->used, TASKSHARED_SLOTS_PER_PAGE)
			walk->fn(page->threads[bit], walk->arg);
}

/* Call @fn for every thread that has a slot. */
void taskshared_pools_walk(taskshared_thread_fn fn, void *arg)
{
	struct taskshared_walk walk = { fn, arg };

	taskshared_pools_each(taskshared_pool_walk, &walk);
}

static void taskshared_pool_histogram_show(struct taskshared_pool *pool, void *m)
{
	char whose[12];

	snprintf(whose, sizeof(whose), "%d", pool->tgid);
	taskshared_histogram_show(&pool->histogram, whose, m);
}

void taskshared_pools_histogram_show(struct seq_file *m)
{
	taskshared_pools_each(taskshared_pool_histogram_show, m);
}

static void taskshared_pool_histogram_reset(struct taskshared_pool *pool, void *unused)
{
	taskshared_histogram_reset(&pool->histogram);
}

void taskshared_pools_histogram_reset(void)
{
	taskshared_pools_each(taskshared_pool_histogram_reset, NULL);
}

struct taskshared_pools_sum {
	unsigned int pools, files, pages, slots;
};

static void taskshared_pool_sum(struct taskshared_pool *pool, void *arg)
{
	struct taskshared_pools_sum *sum = arg;

	sum->pools++;
	sum->files += pool->files;
	sum->pages += pool->nr_pages;
	sum->slots += pool->slots;
}

void taskshared_pools_show(struct seq_file *m)
{
	struct taskshared_pools_sum sum = {};

	taskshared_pools_each(taskshared_pool_sum, &sum);
	seq_printf(m, "pools %u\nfiles %u\npages %u\nslots %u\n", sum.pools, sum.files,
		   sum.pages, sum.slots);
}
