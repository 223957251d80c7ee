// SPDX-License-Identifier: MIT
/*
 * fork(): the child has neither slot nor window, and the parent's file is of no
 * use to it.
 *
 * Registered from a constructor, which makes these handlers the innermost ones:
 * other libraries' handlers, which may have sections, run while the state is
 * whole. From prepare to parent or child the thread's word is its stand-in, so
 * that a signal handler in the child never touches a window that is not there.
 */
#include <pthread.h>

#include "internal.h"

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void before_fork(void)
{
	struct taskshared_tls *t = &taskshared_tls;

	if (t->slot)
		t->word = &t->dummy;
}

static void after_fork_parent(void)
{
	struct taskshared_tls *t = &taskshared_tls;

	if (t->slot)
		t->word = &t->slot->sched_delay;
}

void taskshared_atfork_child(void)
{
	struct taskshared_tls *t = &taskshared_tls;

	if (t->word)
		thread_lose_slot(t);
	t->error = 0;
	device_forget();
}

static void set_handlers(void)
{
	fork_error = -pthread_atfork(before_fork, after_fork_parent,
				     taskshared_atfork_child);
}

int fork_setup(void)
{
	pthread_once(&fork_once, set_handlers);
	return fork_error;
}

__attribute__((constructor(101))) static void library_start(void)
{
	sigset_t signals;

	/* Errors are kept, and told by the first attach. */
	sys_block_signals(&signals);
	thread_setup();
	fork_setup();
	sys_restore_signals(&signals);
}
