// SPDX-License-Identifier: MIT
/*
 * The library on a device in memory: every path that needs no kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "fake.h"

static volatile __u16 *word(void)
{
	return &taskshared_get_slot()->sched_delay;
}

static void first_begin_attaches(void)
{
	fake_restart();
	CHECK(!taskshared_get_slot());
	taskshared_begin();
	CHECK(taskshared_get_slot());
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
	CHECK_EQ(*word(), 0);
	CHECK_EQ(fake.yields, 0);
	CHECK_EQ(taskshared_attach(), 0);
	CHECK_EQ(fake.opens, 1);
	CHECK_EQ(fake.maps, 1);
	CHECK_EQ(fake.slots, 1);
	CHECK_EQ(taskshared_status(), 0);
}

static void sections_nest(void)
{
	fake_restart();
	taskshared_begin();
	taskshared_begin();
	*word() = TASK_PREEMPT_DELAY_GRANTED;
	taskshared_begin();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_GRANTED);
	taskshared_end();
	taskshared_end();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_GRANTED);
	CHECK_EQ(fake.yields, 0);
	taskshared_end();
	CHECK_EQ(*word(), 0);
	CHECK_EQ(fake.yields, 1);
}

static void granted_yields_once(void)
{
	fake_restart();
	errno = 4711;
	taskshared_begin();
	*word() = TASK_PREEMPT_DELAY_GRANTED;
	taskshared_end();
	CHECK_EQ(errno, 4711);
	CHECK_EQ(fake.yields, 1);
	CHECK_EQ(*word(), 0);
	taskshared_begin();
	taskshared_end();
	CHECK_EQ(fake.yields, 1);
}

static void denied_is_cleared(void)
{
	fake_restart();
	taskshared_begin();
	*word() = TASK_PREEMPT_DELAY_DENIED;
	taskshared_end();
	CHECK_EQ(*word(), 0);
	taskshared_begin();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
}

static void ended_delay_does_not_yield(void)
{
	fake_restart();
	taskshared_begin();
	*word() = 0;
	taskshared_end();
	CHECK_EQ(*word(), 0);
	CHECK_EQ(fake.yields, 0);
}

static void unbalanced_ends_heal(void)
{
	fake_restart();
	taskshared_end();
	taskshared_end();
	taskshared_begin();
	CHECK(taskshared_get_slot());
	taskshared_end();
	taskshared_end();
	taskshared_end();
	taskshared_begin();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
	CHECK_EQ(*word(), 0);
	CHECK_EQ(taskshared_tls.nest, NEST_OUTSIDE);
}

static void detach_and_again(void)
{
	fake_restart();
	CHECK_EQ(taskshared_attach(), 0);
	taskshared_detach();
	CHECK(!taskshared_get_slot());
	CHECK_EQ(fake_users(), 0);
	taskshared_detach();
	CHECK_EQ(fake.releases, 1);
	taskshared_begin();
	CHECK(taskshared_get_slot());
	taskshared_end();
	CHECK_EQ(fake.opens, 1);
}

static void detach_inside_a_section(void)
{
	fake_restart();
	taskshared_begin();
	taskshared_begin();
	taskshared_detach();
	taskshared_end();
	taskshared_begin();
	taskshared_end();
	CHECK(!taskshared_get_slot());
	taskshared_end();
	taskshared_begin();
	CHECK(taskshared_get_slot());
	taskshared_end();
	CHECK_EQ(*word(), 0);
}

static void attach_inside_a_section(void)
{
	fake_restart();
	fake.open_error = -ENOENT;
	taskshared_begin();
	CHECK(!taskshared_get_slot());
	fake.open_error = 0;
	CHECK_EQ(taskshared_attach(), 0);
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
	CHECK_EQ(*word(), 0);
}

static void tries_once_until_told(void)
{
	fake_restart();
	fake.open_error = -ENOENT;
	taskshared_begin();
	taskshared_end();
	CHECK_EQ(taskshared_status(), -ENOENT);
	fake.open_error = 0;
	taskshared_begin();
	taskshared_end();
	CHECK(!taskshared_get_slot());
	CHECK_EQ(taskshared_status(), 0);
	CHECK_EQ(taskshared_attach(), 0);
	taskshared_begin();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
}

static void refusal(int expected)
{
	struct task_sharedinfo *slot = NULL;

	CHECK_EQ(taskshared_attach(), expected);
	taskshared_begin();
	taskshared_end();
	CHECK(!taskshared_get_slot());
	CHECK_EQ(taskshared_yield(), 0);
	CHECK_EQ(taskshared_status(), expected);
	CHECK_EQ(task_getshared(TASK_SHAREDINFO, 0, &slot), -1);
	CHECK_EQ(errno, -expected);
	CHECK(!slot);
	CHECK_EQ(fake.opens, fake.closes);
}

static void every_refusal(void)
{
	static const int opening[] = { -ENOENT, -ENODEV, -ENXIO, -EACCES,
				       -EPERM,	-EMFILE, -ENFILE };
	static const int giving[] = { -ENOMEM, -ENOSPC, -EBUSY, -EPERM };
	size_t i;

	for (i = 0; i < sizeof(opening) / sizeof(opening[0]); i++) {
		fake_restart();
		fake.open_error = opening[i];
		refusal(opening[i]);
	}
	for (i = 0; i < sizeof(giving) / sizeof(giving[0]); i++) {
		fake_restart();
		fake.slot_error = giving[i];
		fake.closes = 1; /* stays open for others */
		refusal(giving[i]);
	}
	fake_restart();
	fake.map_error = -ENOMEM;
	refusal(-ENOMEM);
}

static void every_mismatch(void)
{
	fake_restart();
	fake.info.abi_version = TASKSHARED_ABI_VERSION + 1;
	refusal(-EPROTONOSUPPORT);
	fake_restart();
	fake.info.abi_version = TASKSHARED_ABI_VERSION - 1;
	refusal(-EPROTO);
	fake_restart();
	fake.info.features &= ~TASKSHARED_FEATURE_DELAY;
	refusal(-EPROTO);
	fake_restart();
	fake.info.features &= ~TASKSHARED_FEATURE_WINDOW;
	refusal(-EPROTO);
	fake_restart();
	fake.info.slot_size = 64;
	refusal(-EPROTO);
	fake_restart();
	fake.info_error = -ENOTTY;
	refusal(-EPROTO);
	/* a window that cannot hold the slot */
	fake_restart();
	fake.info.window_size = 64;
	fake.closes = 1;
	refusal(-EPROTO);
	/* more than needed is welcome */
	fake_restart();
	fake.info.features |= 1ULL << 63;
	fake.info.slot_size = 256;
	CHECK_EQ(taskshared_attach(), 0);
}

static void lost_descriptor(void)
{
	struct task_sharedinfo *slot;

	fake_restart();
	CHECK_EQ(taskshared_attach(), 0);
	slot = taskshared_get_slot();
	fake_lose_fd();
	taskshared_begin();
	*word() = TASK_PREEMPT_DELAY_GRANTED;
	taskshared_end();
	CHECK_EQ(fake.yields, 1);
	CHECK_EQ(fake.opens, 2);
	CHECK_EQ(fake.closes, 0);
	CHECK_EQ(fake.maps, 1);
	CHECK(taskshared_get_slot() == slot);
	fake_lose_fd();
	taskshared_detach();
	CHECK_EQ(fake_users(), 0);
	CHECK_EQ(fake.opens, 3);
}

static void questions(void)
{
	struct taskshared_counters counters;
	struct taskshared_info info;

	fake_restart();
	CHECK_EQ(taskshared_get_info(NULL), -EFAULT);
	CHECK_EQ(taskshared_get_counters(0, NULL), -EFAULT);
	CHECK_EQ(taskshared_get_counters(-1, &counters), -ESRCH);
	CHECK_EQ(taskshared_get_info(&info), 0);
	CHECK_EQ(info.cap_ns, 50000);
	CHECK_EQ(taskshared_get_counters(42, &counters), 0);
	CHECK_EQ(counters.tid, 42);
	CHECK_EQ(counters.granted, 7);
	CHECK(!taskshared_get_slot());
}

static void proposal_call(void)
{
	struct task_sharedinfo *slot = NULL;

	fake_restart();
	errno = 0;
	CHECK_EQ(task_getshared(0, 0, &slot), -1);
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK_EQ(task_getshared(TASK_SHAREDINFO, 1, &slot), -1);
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK_EQ(task_getshared(TASK_SHAREDINFO, 0, NULL), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(fake.opens, 0);
	CHECK_EQ(task_getshared(TASK_SHAREDINFO, 0, &slot), 0);
	CHECK(slot && slot == taskshared_get_slot());
}

#define THREADS 100

static pthread_barrier_t barrier;
static struct task_sharedinfo *seen[THREADS];

static void *one_thread(void *arg)
{
	pthread_barrier_wait(&barrier);
	taskshared_begin();
	*(struct task_sharedinfo **)arg = taskshared_get_slot();
	taskshared_end();
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void threads_have_their_own(void)
{
	pthread_t threads[THREADS];
	int i, j;

	fake_restart();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, one_thread, &seen[i]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < THREADS; i++) {
		CHECK(seen[i]);
		for (j = 0; j < i; j++)
			CHECK(seen[i] != seen[j]);
	}
	CHECK_EQ(fake.opens, 1);
	CHECK_EQ(fake.maps, 1);
	CHECK_EQ(fake.releases, THREADS);
	CHECK_EQ(fake_users(), 0);
}

static pthread_key_t late_key;
static int late_attach;

static void late_destructor(void *arg)
{
	/* Once more, to come after the library's own. */
	if (arg == &late_key) {
		pthread_setspecific(late_key, &late_attach);
		return;
	}
	taskshared_begin();
	taskshared_end();
	late_attach = taskshared_attach();
}

static void *ending_thread(void *arg)
{
	pthread_setspecific(late_key, &late_key);
	taskshared_begin();
	taskshared_end();
	return arg;
}

static void sections_after_the_end(void)
{
	pthread_t thread;

	fake_restart();
	pthread_key_create(&late_key, late_destructor);
	pthread_create(&thread, NULL, ending_thread, NULL);
	pthread_join(thread, NULL);
	pthread_key_delete(late_key);
	CHECK_EQ(late_attach, -ECANCELED);
	CHECK_EQ(fake.slots, 1);
	CHECK_EQ(fake_users(), 0);
}

static int child_status(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static void fork_outside(void)
{
	pid_t pid;

	fake_restart();
	CHECK_EQ(taskshared_attach(), 0);
	pid = fork();
	if (!pid) {
		CHECK(!taskshared_get_slot());
		CHECK_EQ(taskshared_yield(), 0);
		taskshared_begin();
		CHECK(taskshared_get_slot());
		CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
		CHECK_EQ(taskshared_get_slot()->tid, gettid());
		taskshared_end();
		CHECK_EQ(fake.opens, 2);
		CHECK_EQ(fake.closes, 1);
		fflush(stdout);
		_exit(check_failed);
	}
	CHECK_EQ(child_status(pid), 0);
	taskshared_begin();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
	CHECK_EQ(*word(), 0);
	CHECK_EQ(fake.opens, 1);
}

static void fork_inside(void)
{
	pid_t pid;

	fake_restart();
	taskshared_begin();
	taskshared_begin();
	pid = fork();
	if (!pid) {
		taskshared_end();
		taskshared_begin();
		taskshared_end();
		CHECK(!taskshared_get_slot());
		taskshared_end();
		CHECK_EQ(taskshared_tls.nest, NEST_UNATTACHED);
		taskshared_begin();
		CHECK(taskshared_get_slot());
		CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
		taskshared_end();
		CHECK_EQ(fake.yields, 0);
		/* and a grandchild */
		pid = fork();
		if (!pid) {
			taskshared_begin();
			CHECK(taskshared_get_slot());
			taskshared_end();
			fflush(stdout);
			_exit(check_failed);
		}
		CHECK_EQ(child_status(pid), 0);
		fflush(stdout);
		_exit(check_failed);
	}
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
	CHECK_EQ(*word(), TASK_PREEMPT_DELAY_REQ);
	taskshared_end();
	CHECK_EQ(*word(), 0);
	CHECK_EQ(child_status(pid), 0);
}

static void fork_without_handlers(void)
{
	pid_t pid;

	fake_restart();
	taskshared_begin();
	pid = _Fork();
	if (!pid) {
		taskshared_atfork_child();
		taskshared_end();
		taskshared_begin();
		CHECK(taskshared_get_slot());
		taskshared_end();
		fflush(stdout);
		_exit(check_failed);
	}
	CHECK_EQ(child_status(pid), 0);
	taskshared_end();
}

static atomic_int stop;

static void *attach_loop(void *arg)
{
	while (!stop) {
		taskshared_begin();
		taskshared_end();
		taskshared_detach();
	}
	return arg;
}

static void fork_while_others_attach(void)
{
	pthread_t threads[4];
	pid_t pid;
	int i;

	fake_restart();
	stop = 0;
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, attach_loop, NULL);
	for (i = 0; i < 200; i++) {
		pid = fork();
		if (!pid) {
			alarm(10);
			taskshared_begin();
			taskshared_end();
			_exit(!taskshared_get_slot());
		}
		CHECK_EQ(child_status(pid), 0);
	}
	stop = 1;
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void words_for_every_error(void)
{
	static const int errors[] = {
		ENOENT, ENODEV, ENXIO,		 EACCES,    EPERM,
		EBUSY,	ENOMEM, ENOSPC,		 EMFILE,    ENFILE,
		EPROTO, ENOTTY, EINVAL,		 EFAULT,    ESRCH,
		EAGAIN, E2BIG,	EPROTONOSUPPORT, ECANCELED, EDQUOT
	};
	const char *unknown = taskshared_strerror(9999);
	size_t i;

	CHECK(unknown && strstr(unknown, "dmesg"));
	CHECK(taskshared_strerror(0));
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		CHECK(taskshared_strerror(errors[i]) != unknown);
		CHECK(taskshared_strerror(errors[i]) ==
		      taskshared_strerror(-errors[i]));
	}
	CHECK(strstr(taskshared_strerror(-ENOENT), "modprobe taskshared"));
	CHECK(strstr(taskshared_strerror(-EACCES), "permission"));
	CHECK(strstr(taskshared_strerror(-EBUSY), "livepatch"));
	CHECK(strstr(taskshared_strerror(-ENOMEM), "ulimit -l"));
}

int main(void)
{
	alarm(60);
	RUN(first_begin_attaches);
	RUN(sections_nest);
	RUN(granted_yields_once);
	RUN(denied_is_cleared);
	RUN(ended_delay_does_not_yield);
	RUN(unbalanced_ends_heal);
	RUN(detach_and_again);
	RUN(detach_inside_a_section);
	RUN(attach_inside_a_section);
	RUN(tries_once_until_told);
	RUN(every_refusal);
	RUN(every_mismatch);
	RUN(lost_descriptor);
	RUN(questions);
	RUN(proposal_call);
	RUN(threads_have_their_own);
	RUN(sections_after_the_end);
	RUN(fork_outside);
	RUN(fork_inside);
	RUN(fork_without_handlers);
	RUN(fork_while_others_attach);
	RUN(words_for_every_error);
	return check_status;
}
