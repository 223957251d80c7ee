/* SPDX-License-Identifier: MIT */
/*
 * What a program finds that exec has started in a process with slots. It is the test
 * itself, started once more: then it looks and ends, before main().
 */
#ifndef TASKSHARED_AFTER_EXEC_H
#define TASKSHARED_AFTER_EXEC_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "helpers/taskshared_test.h"

/* The descriptor it inherits, slots it may find. */
#define AFTER_EXEC	"TASKSHARED_TEST_AFTER_EXEC"

static char *exec_environment[3];
static char *const exec_arguments[] = { (char *)"after_exec", NULL };

/*
 * Runs before main() in the program that exec starts: 0 when the old slot is
 * gone and the old file is of no use any more.
 */
static inline int check_after_exec(int fd, long long slots)
{
	struct taskshared_counters counters = { 0 };
	struct taskshared_info info = { 0 };
	struct taskshared_slot where = { 0 };
	struct task_sharedinfo *slot;

	/* exec made the thread that called it the first one. */
	if (gettid() != getpid() || !tst_wait_until(tst_state("slots") == slots, 5000))
		return 1;
	if (tst_count_mappings() != 0)
		return 2;
	if (tst_call(fd, TASKSHARED_IOC_INFO, &info) != EPERM)
		return 3;
	if (tst_call(fd, TASKSHARED_IOC_SLOT, &where) != EPERM)
		return 4;
	if (tst_call(fd, TASKSHARED_IOC_RELEASE, NULL) != EPERM)
		return 5;
	if (tst_call(fd, TASKSHARED_IOC_YIELD, NULL) != EPERM)
		return 6;
	if (tst_call(fd, TASKSHARED_IOC_COUNTERS, &counters) != EPERM)
		return 7;
	if (tst_map_page(fd) || errno != EPERM)
		return 8;
	fd = tst_open();
	if (fd < 0)
		return 9;
	if (tst_call(fd, TASKSHARED_IOC_RELEASE, NULL) != ENOENT)
		return 10;
	slot = tst_slot(fd);
	if (!slot || !tst_is_fresh(slot))
		return 11;
	if (tst_state("slots") != slots + 1)
		return 12;
	return 0;
}

static void __attribute__((constructor)) after_exec(void)
{
	const char *word = getenv(AFTER_EXEC);
	int fd, slots;

	if (word && sscanf(word, "%d:%d", &fd, &slots) == 2)
		_exit(check_after_exec(fd, slots));
}

/* An environment that says what to check; @fd survives exec. */
static inline void prepare_exec(int fd, int slots)
{
	static char word[64];

	fcntl(fd, F_SETFD, 0);
	snprintf(word, sizeof(word), AFTER_EXEC "=%d:%d", fd, slots);
	exec_environment[0] = word;
}


/* Returns only if it fails. The first thread, which /proc/self is, may have ended. */
static inline void exec_again(void)
{
	execve("/proc/thread-self/exe", exec_arguments, exec_environment);
}

#endif /* TASKSHARED_AFTER_EXEC_H */
