/* SPDX-License-Identifier: MIT */
/*
 * libtaskshared: short critical sections that the scheduler lets finish.
 *
 *	taskshared_begin();
 *	... hold a lock for a few microseconds ...
 *	taskshared_end();
 *
 * Between the two the thread asks the kernel not to preempt it. When the kernel
 * wants the CPU in that moment it grants a short delay (at most 50 us), and
 * taskshared_end() gives the CPU back. What exactly is granted and when stands
 * in <linux/taskshared.h>.
 *
 * Without the taskshared module everything here is a harmless no-op of the same
 * cost; taskshared_status() and taskshared_strerror() tell why.
 *
 * Errors are negative errno values, to be passed to taskshared_strerror(); errno
 * itself is never changed (task_getshared() excepted). No call is a
 * cancellation point (nor safe under asynchronous cancellation), none aborts, none
 * keeps a lock.
 *
 * Threads
 *	Every call may be made by any thread at any time and concerns the calling
 *	thread only. The process has one file descriptor (close-on-exec, never
 *	0 to 2) and one mapping, made by the first thread that attaches.
 *	A thread's slot is released when the thread ends. Sections in thread
 *	destructors that run after that are no-ops.
 *
 * Module loaded late
 *	A thread tries once, at its first section. If the module is absent in that
 *	moment, the thread's sections stay no-ops until it calls
 *	taskshared_attach(), which always tries again. Other threads still try at
 *	their own first section.
 *
 * Signal handlers
 *	Async-signal-safe: taskshared_begin(), taskshared_end(),
 *	taskshared_yield(), taskshared_get_slot(), taskshared_get_info(),
 *	taskshared_get_counters(), taskshared_status(), taskshared_strerror(),
 *	taskshared_atfork_child(), and, once the thread has attached,
 *	taskshared_attach(). The first attach of a thread calls
 *	pthread_setspecific(), so a thread whose handlers have sections had better
 *	attach before.
 *	A handler must leave as many sections as it enters.
 *	The kernel takes the request of an interrupted section back: until that
 *	section ends, neither it nor those in the handler get a delay.
 *
 * longjmp and C++ exceptions
 *	A section that is left without taskshared_end() stays open: the thread
 *	keeps asking for delays until the matching taskshared_end(). Whoever
 *	catches has to close it. Same for a thread cancelled inside a section, but
 *	there the slot goes with the thread.
 *
 * fork
 *	The child of fork() starts without slot, descriptor and mapping, and gets
 *	its own at its next section or taskshared_attach(). A section that was
 *	open at fork() goes on in the parent, and is a no-op in the child, which
 *	may end it. The children of vfork() and posix_spawn() are not affected
 *	(they share the parent's memory until exec). The children of _Fork() and
 *	of a bare clone() without CLONE_VM must call taskshared_atfork_child()
 *	before anything else here.
 *
 * dlopen
 *	The thread state is 32 bytes of static TLS. The library stays in memory
 *	after dlclose().
 */
#ifndef TASKSHARED_H
#define TASKSHARED_H

#include <sys/types.h>
#include <linux/taskshared.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * Private, but part of the binary interface, because the inline functions below
 * are compiled into programs: @word and @nest keep their place.
 *
 * @word: the sched_delay of the thread's slot, or @dummy
 * @nest: open sections less one; far below -1: has not tried to attach
 * @error: why the kernel gave no slot at the last attempt
 * @slot: the thread's slot, or NULL
 * @dummy: stands in for sched_delay where there is no slot
 * @ending: the thread's destructor has run
 * @reserved: 0
 */
struct taskshared_tls {
	volatile __u16 *word;
	__s32 nest;
	__s32 error;
	struct task_sharedinfo *slot;
	volatile __u16 dummy;
	__u16 ending;
	__u32 reserved;
};

extern __thread struct taskshared_tls taskshared_tls
	__attribute__((tls_model("initial-exec")));

/* The rare halves of taskshared_begin() and taskshared_end(). Private. */
#if defined(__x86_64__) && !defined(__ILP32__)
/*
 * Called in a way that spares the general registers: a section costs the code
 * around it no spills. The 128 bytes are the red zone.
 */
#ifdef __AVX512F__
#define TASKSHARED_CLOBBERS_AVX512                                             \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",       \
		"xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", \
		"xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define TASKSHARED_CLOBBERS_AVX512
#endif
#ifdef __SSE__
#define TASKSHARED_CLOBBERS                                                  \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",      \
		"xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
		"xmm15" TASKSHARED_CLOBBERS_AVX512, "cc", "memory"
#else
#define TASKSHARED_CLOBBERS "cc", "memory"
#endif

static inline void taskshared_call_begin_slow(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "call taskshared_begin_slow@PLT\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 :
			 : TASKSHARED_CLOBBERS);
}

static inline void taskshared_call_end_slow(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "call taskshared_end_slow@PLT\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 :
			 : TASKSHARED_CLOBBERS);
}

#undef TASKSHARED_CLOBBERS
#undef TASKSHARED_CLOBBERS_AVX512
#else
void taskshared_begin_slow(void) __attribute__((cold));
void taskshared_end_slow(void) __attribute__((cold));

static inline void taskshared_call_begin_slow(void)
{
	taskshared_begin_slow();
}

static inline void taskshared_call_end_slow(void)
{
	taskshared_end_slow();
}
#endif

/**
 * taskshared_begin() - enter a critical section
 *
 * Asks the kernel not to preempt the calling thread. Sections nest: only the
 * outermost one asks. The first section of a thread attaches it (a few system
 * calls; see taskshared_attach()); after that this is a plain store, no system
 * call, no locked instruction.
 *
 * Context: any thread, signal handlers. Keeps errno.
 */
static inline void taskshared_begin(void)
{
#if defined(__x86_64__) && !defined(__ILP32__)
	volatile __u16 *word;
	unsigned long tls;
	int outermost;

	/* Every section gets the address anew: kept, it would cost spills. */
	__asm__ volatile("mov taskshared_tls@gottpoff(%%rip), %0\n\t"
			 "addl $1, %%fs:8(%0)" /* nest */
			 : "=&r"(tls), "=@ccz"(outermost)
			 :
			 : "memory");
	if (__builtin_expect(outermost, 1)) {
		__asm__ volatile("mov %%fs:(%1), %0" : "=r"(word) : "r"(tls));
		*word = TASK_PREEMPT_DELAY_REQ;
	} else if (__builtin_expect(taskshared_tls.nest < 0, 0)) {
		taskshared_call_begin_slow();
	}
#else
	taskshared_tls.nest++;
	__asm__ volatile("" : : : "memory");
	if (__builtin_expect(taskshared_tls.nest == 0, 1))
		*taskshared_tls.word = TASK_PREEMPT_DELAY_REQ;
	else if (__builtin_expect(taskshared_tls.nest < 0, 0))
		taskshared_call_begin_slow();
#endif
	__asm__ volatile("" : : : "memory");
}

/**
 * taskshared_end() - leave a critical section
 *
 * The end of the outermost section takes the request back and, if a delay was
 * granted, gives the CPU back (one system call).
 *
 * Context: any thread, signal handlers. Keeps errno. One call too many is
 * forgiven.
 */
static inline void taskshared_end(void)
{
	int outermost, answered;

#if defined(__x86_64__) && !defined(__ILP32__)
	unsigned long tls;
	volatile __u16 *word;

	/* Carry: the count was 0 and is -1 now. */
	__asm__ volatile("mov taskshared_tls@gottpoff(%%rip), %0\n\t"
			 "subl $1, %%fs:8(%0)" /* nest */
			 : "=&r"(tls), "=@ccc"(outermost)
			 :
			 : "memory");
	if (__builtin_expect(!outermost, 0))
		return;
	/*
	 * One instruction, so that no interrupt can come between load and
	 * store: REQ becomes 0; GRANTED and DENIED leave something.
	 */
	__asm__ volatile("mov %%fs:(%1), %0" : "=r"(word) : "r"(tls));
	__asm__ volatile("andw %2, %0"
			 : "+m"(*word), "=@ccnz"(answered)
			 : "i"(~TASK_PREEMPT_DELAY_REQ)
			 : "memory");
#else
	__asm__ volatile("" : : : "memory");
	outermost = taskshared_tls.nest == 0;
	taskshared_tls.nest--;
	__asm__ volatile("" : : : "memory");
	if (__builtin_expect(!outermost, 0))
		return;
	answered = *taskshared_tls.word > TASK_PREEMPT_DELAY_REQ;
	if (__builtin_expect(!answered, 1))
		*taskshared_tls.word = 0;
#endif
	if (__builtin_expect(answered, 0))
		taskshared_call_end_slow();
}

/**
 * taskshared_attach() - get the calling thread's slot
 *
 * Not needed before taskshared_begin(), but it tells errors, and takes the cost
 * of the first section (about ten system calls for the first thread, three for
 * others) to a moment of the caller's choice. Inside a section it takes effect
 * at once.
 *
 * Context: any thread; see "Signal handlers" above. Idempotent.
 * Return: 0, or
 * * -ENOENT, -ENODEV, -ENXIO: the module is not loaded
 * * -EACCES, -EPERM: no permission to use the device
 * * -EBUSY: the kernel's hooks are held by something else
 * * -ENOMEM: no memory, or the locked-memory limit is reached
 * * -ENOSPC: the process has all the slots it may have
 * * -EDQUOT: the processes of this user have all the slots they may have
 * * -EMFILE, -ENFILE: too many open files
 * * -EPROTO: the module is older than this library, or no taskshared at all
 * * -EPROTONOSUPPORT: the module is newer than this library
 * * -ECANCELED: the thread is ending, its slot is released already
 * * -EAGAIN: kprobes or ftrace are switched off, or the process has no
 *   thread-specific key left (PTHREAD_KEYS_MAX)
 *
 * and the thread's sections are no-ops until it calls this again.
 */
int taskshared_attach(void);

/**
 * taskshared_detach() - release the calling thread's slot
 *
 * A running delay ends. Inside a section, the rest of the section is a no-op.
 * The next outermost section attaches again.
 *
 * Context: any thread, not in signal handlers. Never fails.
 */
void taskshared_detach(void);

/**
 * taskshared_yield() - give the CPU back if a delay is running
 *
 * For programs that write sched_delay themselves; taskshared_end() does it by
 * itself.
 *
 * Context: any thread, signal handlers.
 * Return: 1 if a delay was running and has ended, 0 if not (nothing happened;
 * a thread without a slot never has one), or a negative errno.
 */
int taskshared_yield(void);

/**
 * taskshared_get_slot() - the calling thread's slot
 *
 * Does not attach. The slot stays where it is until the thread detaches or ends;
 * other threads of the process may read it meanwhile.
 *
 * Context: any thread, signal handlers.
 * Return: the slot, or NULL if the thread has none.
 */
struct task_sharedinfo *taskshared_get_slot(void);

/**
 * taskshared_get_info() - what the running module can do
 * @info: filled in; every byte of it is written on success
 *
 * Context: any thread, signal handlers.
 * Return: 0, -EFAULT if @info is NULL, or what taskshared_attach() returns.
 */
int taskshared_get_info(struct taskshared_info *info);

/**
 * taskshared_get_counters() - what became of a thread's requests
 * @tid: a thread of this process that has a slot; 0: the calling thread
 * @counters: filled in; every byte of it is written on success
 *
 * Context: any thread, signal handlers.
 * Return: 0, -EFAULT if @counters is NULL, -ESRCH if that thread has no slot, or
 * what taskshared_attach() returns.
 */
int taskshared_get_counters(pid_t tid, struct taskshared_counters *counters);

/**
 * taskshared_status() - does it work?
 *
 * Opens the device if the process has not done so yet.
 *
 * Context: any thread, signal handlers.
 * Return: 0 if the device works; otherwise the reason, as taskshared_attach()
 * returns it: why the device cannot be used, or else why the calling thread got
 * no slot when it last tried.
 */
int taskshared_status(void);

/**
 * taskshared_strerror() - an error in words, and what to do about it
 * @err: what a call of this library returned, or an errno value
 *
 * Context: any thread, signal handlers.
 * Return: one line of English without newline, never NULL, never to be freed.
 */
const char *taskshared_strerror(int err);

/**
 * taskshared_atfork_child() - forget what belongs to the parent process
 *
 * fork() does it by itself. To be called first in a child made by _Fork() or by
 * a bare clone() without CLONE_VM.
 *
 * Context: the only thread of a new process; async-signal-safe.
 */
void taskshared_atfork_child(void);

/**
 * task_getshared() - the system call that was proposed for Linux in 2024
 * @option: TASK_SHAREDINFO
 * @flags: 0
 * @uaddr: a struct task_sharedinfo **, where the slot's address is stored
 *
 * Attaches the thread if needed.
 *
 * Context: as taskshared_attach().
 * Return: 0, or -1 and errno: EINVAL for an unknown @option or @flags, EFAULT if
 * @uaddr is NULL, or one of the errors of taskshared_attach().
 */
int task_getshared(int option, int flags, void *uaddr);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* TASKSHARED_H */
