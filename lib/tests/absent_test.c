// SPDX-License-Identifier: MIT
/*
 * Without the device: everything is a no-op, and says why. Exits with 4 where
 * there is a device.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "taskshared.h"

static void sections_do_nothing(void)
{
	int i;

	errno = 4711;
	for (i = 0; i < 1000; i++) {
		taskshared_begin();
		taskshared_begin();
		taskshared_end();
		taskshared_end();
	}
	CHECK_EQ(errno, 4711);
	CHECK(!taskshared_get_slot());
}

static void calls_say_why(void)
{
	struct taskshared_counters counters;
	struct task_sharedinfo *slot = NULL;
	struct taskshared_info info;
	int err = taskshared_status();

	CHECK(err < 0);
	errno = 4711;
	CHECK_EQ(taskshared_attach(), err);
	CHECK_EQ(taskshared_get_info(&info), err);
	CHECK_EQ(taskshared_get_counters(0, &counters), err);
	CHECK_EQ(taskshared_yield(), 0);
	taskshared_detach();
	CHECK_EQ(errno, 4711);
	CHECK_EQ(task_getshared(TASK_SHAREDINFO, 0, &slot), -1);
	CHECK_EQ(errno, -err);
	CHECK(!slot);
	if (err == -ENOENT)
		CHECK(strstr(taskshared_strerror(err), "modprobe taskshared"));
}

static void *thread(void *arg)
{
	sections_do_nothing();
	return arg;
}

static void threads_and_forks(void)
{
	pthread_t threads[8];
	int i, status = -1;
	pid_t pid;

	taskshared_begin();
	pid = fork();
	taskshared_end();
	sections_do_nothing();
	if (!pid)
		_exit(check_failed);
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	for (i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, thread, NULL), 0);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void no_descriptor_is_left(void)
{
	int fd = dup(0);

	CHECK_EQ(fd, 3);
	close(fd);
}

int main(void)
{
	if (!access(TASKSHARED_DEVICE, F_OK))
		return 4;
	RUN(sections_do_nothing);
	RUN(calls_say_why);
	RUN(threads_and_forks);
	RUN(no_descriptor_is_left);
	return check_status;
}
