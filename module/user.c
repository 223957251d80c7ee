// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of a user: the slots of all its processes by the max_slots parameter, the
 * pages they are in by RLIMIT_MEMLOCK.
 */

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>

#include "user.h"

/* As many as a default pid space has threads. */
static unsigned int taskshared_max_slots = 32768;
module_param_named(max_slots, taskshared_max_slots, uint, 0644);
MODULE_PARM_DESC(max_slots, "Most slots that all processes of a user may have together (default 32768); does not bind who has CAP_SYS_RESOURCE");

/**
 * struct taskshared_user - a user that has pools
 * @node: in taskshared_users
 * @user: the kernel's own; a reference is held
 * @pools: references; protected by taskshared_users_lock
 * @slots: taken in all of them
 */
struct taskshared_user {
	struct list_head node;
	struct user_struct *user;
	unsigned int pools;
	atomic_long_t slots;
};

/* Innermost; not held while memory is allocated. */
static DEFINE_MUTEX(taskshared_users_lock);
static LIST_HEAD(taskshared_users);

static struct taskshared_user *taskshared_user_find(const struct user_struct *wanted)
{
	struct taskshared_user *user;

	lockdep_assert_held(&taskshared_users_lock);
	list_for_each_entry(user, &taskshared_users, node)
		if (user->user == wanted)
			return user;
	return NULL;
}

/**
 * taskshared_user_get() - the user that current runs as, for a new pool
 *
 * Context: process context.
 * Return: the user, or NULL if there is no memory.
 */
struct taskshared_user *taskshared_user_get(void)
{
	struct taskshared_user *fresh, *user;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;

	mutex_lock(&taskshared_users_lock);
	user = taskshared_user_find(current_user());
	if (!user) {
		user = fresh;
		user->user = get_uid(current_user());
		list_add(&user->node, &taskshared_users);
	}
	user->pools++;
	mutex_unlock(&taskshared_users_lock);
	if (user != fresh)
		kfree(fresh);
	return user;
}

/* The last pool of a user takes it along: its slots and pages are gone before. */
void taskshared_user_put(struct taskshared_user *user)
{
	bool last;

	mutex_lock(&taskshared_users_lock);
	last = !--user->pools;
	if (last)
		list_del(&user->node);
	mutex_unlock(&taskshared_users_lock);
	if (!last)
		return;
	WARN_ON_ONCE(atomic_long_read(&user->slots));
	free_uid(user->user);
	kfree(user);
}

/*
 * One more, if that is within @limit or the caller may go beyond it. Never too many, not
 * even for a moment: somebody else, for whom there is room, would be refused.
 */
static bool taskshared_user_charge(atomic_long_t *sum, unsigned long limit, int capability)
{
	long old = atomic_long_read(sum);

	do {
		if ((unsigned long)old >= limit && !capable(capability))
			return false;
	} while (!atomic_long_try_cmpxchg(sum, &old, old + 1));
	return true;
}

/* Return: 0, or -EDQUOT if the user has all the slots it may have. */
int taskshared_user_charge_slot(struct taskshared_user *user)
{
	unsigned int limit = READ_ONCE(taskshared_max_slots);

	return taskshared_user_charge(&user->slots, limit, CAP_SYS_RESOURCE) ? 0 : -EDQUOT;
}

void taskshared_user_uncharge_slot(struct taskshared_user *user)
{
	atomic_long_dec(&user->slots);
}

/*
 * Pinned pages are charged as io_uring and perf do it: to the user, not the mm.
 * Return: 0, or -ENOMEM.
 */
int taskshared_user_charge_page(struct taskshared_user *user)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	return taskshared_user_charge(&user->user->locked_vm, limit, CAP_IPC_LOCK) ? 0 : -ENOMEM;
}

void taskshared_user_uncharge_page(struct taskshared_user *user)
{
	atomic_long_dec(&user->user->locked_vm);
}
