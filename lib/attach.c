// SPDX-License-Identifier: MIT
/*
 * What a thread has: its slot, or a word of its own that stands in for it.
 *
 * taskshared_tls.word is valid from the first attempt on, so begin and end need
 * no other test than the one on the nesting count:
 *
 *	state		nest		word		slot
 *	not tried	< -1		anything	NULL
 *	has a slot	>= -1		in the slot	the slot
 *	has none	>= -1		dummy		NULL
 *
 * Every change below is ordered so that a signal handler which begins and ends a
 * section in between finds one of these states.
 */
#include <errno.h>
#include <pthread.h>

#include "internal.h"

__thread struct taskshared_tls taskshared_tls = { .nest = NEST_UNATTACHED };

_Static_assert(sizeof(struct taskshared_tls) <= 32, "static TLS is scarce");
/* taskshared_begin() and taskshared_end() have these in their assembly. */
_Static_assert(offsetof(struct taskshared_tls, word) == 0, "inlined");
_Static_assert(sizeof(void *) != 8 ||
		       offsetof(struct taskshared_tls, nest) == 8,
	       "inlined");

static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static int thread_key_error;

/*
 * Runs when the thread ends. The kernel would release the slot a little later;
 * this way it is free when pthread_join() returns. No new slot after that: other
 * destructors that have sections would get one each.
 */
static void thread_end(void *arg)
{
	struct taskshared_tls *t = arg;

	t->ending = 1;
	taskshared_detach();
}

static void make_key(void)
{
	thread_key_error = -pthread_key_create(&thread_key, thread_end);
}

/* Once per process; early, so that the key is one that needs no allocation. */
int thread_setup(void)
{
	pthread_once(&thread_once, make_key);
	return thread_key_error;
}

/* The kernel's slot is gone or about to go: stand-in word from here on. */
void thread_lose_slot(struct taskshared_tls *t)
{
	t->slot = NULL;
	t->dummy = DUMMY_REATTACH;
	t->word = &t->dummy;
	__asm__ volatile("" : : : "memory");
	if (t->nest < 0)
		t->nest = NEST_UNATTACHED;
}

static int get_slot(struct taskshared_tls *t)
{
	struct taskshared_slot where = { 0 };
	struct task_sharedinfo *slot;
	int err;

	err = thread_setup();
	if (!err)
		err = -pthread_setspecific(thread_key, t);
	if (err)
		return err;

	err = device_ioctl(TASKSHARED_IOC_SLOT, &where);
	if (err < 0)
		return err;

	slot = device_slot(&where);
	if (!slot)
		return -EPROTO;
	/* Also brings the page in now, and not in the first section. */
	if (*(volatile __u32 *)&slot->tid != where.tid)
		return -EPROTO;

	t->slot = slot;
	t->word = &slot->sched_delay;
	return 0;
}

int taskshared_attach(void)
{
	struct taskshared_tls *t = &taskshared_tls;
	sigset_t signals;
	int err;

	if (t->slot)
		return 0;

	sys_block_signals(&signals);
	if (!t->slot) {
		t->dummy = 0;
		t->word = &t->dummy;
		err = t->ending ? -ECANCELED : device_get();
		if (!err) {
			err = get_slot(t);
			t->error = err;
		}
		if (t->nest < 0)
			t->nest = NEST_OUTSIDE;
		else
			*t->word = TASK_PREEMPT_DELAY_REQ;
	} else {
		err = 0; /* a signal handler did it */
	}
	sys_restore_signals(&signals);
	return err;
}

void taskshared_detach(void)
{
	struct taskshared_tls *t = &taskshared_tls;
	sigset_t signals;

	sys_block_signals(&signals);
	if (t->slot) {
		t->slot->sched_delay = 0;
		thread_lose_slot(t);
		device_ioctl(TASKSHARED_IOC_RELEASE, NULL);
	}
	sys_restore_signals(&signals);
}

struct task_sharedinfo *taskshared_get_slot(void)
{
	return taskshared_tls.slot;
}
