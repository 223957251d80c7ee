// SPDX-License-Identifier: MIT
/*
 * Errors in words: what is wrong, and what to do about it.
 */
#include <errno.h>

#include "internal.h"

static const struct {
	int err;
	const char *text;
} texts[] = {
	{ 0, "no error" },
	{ ENOENT, "there is no " TASKSHARED_DEVICE
		  ": the taskshared module is not loaded; try "
		  "`modprobe taskshared` as root (in a container, the device "
		  "must also be passed into it)" },
	{ ENODEV, "nothing is behind " TASKSHARED_DEVICE
		  ": the taskshared module is not loaded; try "
		  "`modprobe taskshared` as root" },
	{ ENXIO, "nothing is behind " TASKSHARED_DEVICE
		 ": the taskshared module is not loaded; try "
		 "`modprobe taskshared` as root" },
	{ EACCES, "no permission to open " TASKSHARED_DEVICE
		  ": see `ls -l " TASKSHARED_DEVICE
		  "` for who may, or ask the administrator" },
	{ EPERM, "not permitted: a container, sandbox or security policy "
		 "forbids " TASKSHARED_DEVICE
		 ", or the device was opened by the parent process and this "
		 "child was not made by fork() (then call "
		 "taskshared_atfork_child())" },
	{ EBUSY, "the kernel's scheduler cannot be hooked at the moment: "
		 "something else, such as a livepatch or a tracer, holds "
		 "schedule(); see `dmesg | grep taskshared`" },
	{ ENOMEM, "out of memory, or a limit is reached: compare "
		  "`ulimit -l` (locked memory, KiB; a page holds the slots of "
		  "32 threads), `ulimit -v`, and the memory limit of the "
		  "cgroup" },
	{ ENOSPC, "this process has all the slots it may have: fewer threads "
		  "at a time, or taskshared_detach() in those that need none" },
	{ EDQUOT, "all processes of this user together have all the slots they "
		  "may have: see "
		  "/sys/module/taskshared/parameters/max_slots" },
	{ EMFILE, "the process has too many open files: see `ulimit -n`" },
	{ ENFILE, "the system has too many open files" },
	{ EPROTO, TASKSHARED_DEVICE
	  " does not offer what this library needs: the taskshared "
	  "module is older than the library; install and load the "
	  "module that came with it" },
	{ EPROTONOSUPPORT, "the taskshared module is newer than this library: "
			   "update libtaskshared to the version that came "
			   "with the module" },
	{ ENOTTY, "the taskshared module does not know this call: it is older "
		  "than the library; install and load the module that came "
		  "with it" },
	{ E2BIG, "the taskshared module does not know all of this request: it "
		 "is older than the library; install and load the module that "
		 "came with it" },
	{ EINVAL, "invalid argument: an unknown option, or flags that are "
		  "not 0" },
	{ EFAULT, "invalid argument: a NULL or bad pointer" },
	{ ESRCH, "no thread of this process with that id has a slot" },
	{ ECANCELED, "the thread is ending: it gets no slot any more" },
	{ EAGAIN, "the kernel's kprobes or ftrace are switched off (see "
		  "`dmesg | grep taskshared`), or the C library is out of "
		  "thread-specific keys (see pthread_key_create(3))" },
};

const char *taskshared_strerror(int err)
{
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].err == err || texts[i].err == -err)
			return texts[i].text;
	}
	return "unexpected error of the taskshared device; see "
	       "`dmesg | grep taskshared`";
}
