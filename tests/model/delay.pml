/* SPDX-License-Identifier: MIT */
/*
 * One thread that has a slot, its delay, and all that can happen to it at any moment,
 * for Spin. It mirrors module/delay.c, slot.c, cap.c and the hooks in hook.c and
 * hook_kprobe.c; the comments name the functions. tests/model/check searches all of it,
 * and shows that each fault of the list below, put in on purpose, is found.
 *
 * Others act between any two steps (one "atomic" each). What the module does with
 * interrupts off is one step, as others can do no more in its middle than before or
 * behind it; but for need-resched and who waits, where the order is all, it is two. Of
 * the machine it is taken for granted that a pending interrupt comes before the next
 * step, if interrupts are on; and, so that a system call ends, that no more than one
 * comes between two steps of the thread, besides the self-interrupt.
 *
 * Not here: times (the cap is reached when the timer says so), a second thread with
 * a slot or another CPU (they leave a CPU's timer in no state in which the thread's
 * own earlier delays do not leave it, too), arming of the hooks, pages. A thread that
 * exits is one that gives its slot back and is never picked again.
 */

/* Faults, by their number in the environment variable FAULT; 0: none. */
#define FAULT_ACTIVE	1	/* grants while a delay is active */
#define FAULT_OWED	2	/* grants while a pass is owed */
#define FAULT_ASKED	3	/* grants though nobody asks for the CPU any more */
#define FAULT_CAP	4	/* grants without arming the cap */
#define FAULT_CONFIRM	5	/* the irq_work does not look for a waiter again */
#define FAULT_LEFTOVER	6	/* the timer takes an earlier delay's expiry for its own */
#define FAULT_EXPIRE	7	/* the cap does not ask for the CPU */
#define FAULT_WATCH	8	/* no second look when the cap finds a system call */
#define FAULT_HOOK	9	/* the hook in the loop does not end the delay */
#define FAULT_ELSEWHERE	10	/* the hook elsewhere does not end the delay */
#define FAULT_OUT	11	/* switching out does not end the delay */
#define FAULT_WORD	12	/* the word still reads GRANTED after the delay */
#define FAULT_COUNT	13	/* an end is not counted */
#define FAULT_REQUEST	14	/* a denied request is not counted */
#define FAULT_HANDLER	15	/* a signal does not cut the delay */
#define FAULT_TAKE	16	/* a signal does not take the request back */
#define FAULT_RELEASE	17	/* the slot goes in the middle of a delay */
#define FAULT_CUT	18	/* a cut does not ask for the CPU */
#define FAULT_SEEN	19	/* the hook does not say that it decided */
hidden byte fault;
#define broken(what)	(fault == FAULT_##what)

/* The word. User space writes any value, at any time; others are taken as DENIED is. */
#define REQ		1
#define GRANTED		2
#define DENIED		3
byte word;

/* struct taskshared_delay; any of the flags makes it busy. */
bool is_active, expired, owed, seen;
#define busy		(is_active || expired || owed || seen)

mtype:mode = {
	USER,		/* user mode */
	KERNEL,		/* in a system call or exception */
	LOOP,		/* in exit_to_user_mode_loop(); interrupts are off */
	CALL,		/* at its call of schedule(), before the hook */
	BEGIN,		/* in taskshared_delay_begin(); interrupts are off */
	STAY,		/* in the hook, schedule() not being skipped; interrupts are off */
	PASS,		/* in schedule(), behind the hook */
	SIGNAL,		/* in get_signal(), at the tracepoint */
	TAKE,		/* in taskshared_slot_signal(), behind the cut */
	PICK,		/* in __schedule(); interrupts are off */
	OFF		/* not on the CPU */
};
mtype:mode mode = KERNEL, back = KERNEL;
mtype:todo = { RETURN, PREEMPT_OFF, YIELD, SCHED_YIELD, SLOT, DARK, SLEEP, COND_RESCHED };
mtype:todo todo = SLOT;	/* what the system call still does */
bool live;		/* the thread has a slot, taskshared_running tells of it */
bool syscall = true;	/* !taskshared_arch_from_interrupt(); false in user mode */
bool asleep;		/* will not be picked again at once */
bool sig;		/* a signal is pending */
bool urgent;		/* taskshared_waiter_urgent() */
bool lock;		/* of the run queue, held by another CPU */

/* need-resched; LAZY is honoured on the way to user mode only. */
#define LAZY		1
#define NOW		2
byte need;

/* struct taskshared_cap. The timer is set for cap->expires, or for an earlier delay. */
bool work;
#define OLD		1
#define NEW		2
byte timer;
bool line, ipi;		/* pending interrupts: the timer's, another CPU's */
bool row;		/* one has come since the thread's last step */

/* Constant: the kernel preempts itself; the hook is at the entry, not at the call. */
bool preempts, at_entry;

/*
 * What the assertions need to know and the module does not. The search for what always
 * comes to happen does without, and without the words that are no request.
 */
#ifdef LIVENESS
#define GHOST		hidden short
#define WORD(value)	(value == REQ -> REQ : 0)
#else
#define GHOST		short
#define WORD(value)	value
#endif
GHOST running;		/* the counters' granted - yielded - expired - ended */
GHOST passed = true;	/* through the scheduler, since the last grant */
GHOST ours;		/* GRANTED in the word is the kernel's */
GHOST before;		/* REQ in the word is older than the signal */
GHOST found;		/* a request was found and is not counted yet */
GHOST decided;		/* the hook in the loop has decided on the coming pass */
GHOST hooked;		/* any hook has seen it */

#define on		(live && mode != OFF)
#define irqs_on		(mode != LOOP && mode != BEGIN && mode != STAY && mode != PICK)
#define interrupt	(irqs_on && (work || (!row && (line || ipi))))
#define pinned		(mode == KERNEL && (todo == PREEMPT_OFF || todo == DARK))

inline store(value, kernel)
{
	word = WORD(value); ours = kernel; before = false
}

/* taskshared_delay_end() */
inline delay_end()
{
	running = (broken(COUNT) -> running : running - 1);
	is_active = false;
	if
	:: word == GRANTED && !broken(WORD) -> store(0, false)
	:: else
	fi
}

/* taskshared_delay_pass() */
inline delay_pass()
{
	owed = false;
	if
	:: is_active -> delay_end()
	:: else
	fi
}

/* taskshared_delay_passed() */
#define delay_passed	(is_active && expired && need != NOW)

/* taskshared_delay_cut() by a thread that has a slot; owes: it is no yield */
inline delay_cut(owes)
{
	if
	:: live && delay_passed -> delay_pass()
	:: else
	fi;
	if
	:: live && is_active ->
		delay_end();
		owed = owes;
		need = (broken(CUT) -> need : NOW)
	:: else
	fi
}

/*
 * taskshared_hook_thread() from the loop, or taskshared_at_call(), and in it
 * taskshared_delay_decide(). What may change at any moment, and does no more than
 * refuse (delay_us, health, class, quota), is a free choice.
 */
inline hook_loop()
{
	if
	:: !live || syscall || word != REQ || (!need && !broken(ASKED)) -> mode = STAY
	:: live && !syscall && word == REQ && (need || broken(ASKED)) ->
		assert(need);
		found = true;
		if
		:: is_active && !broken(ACTIVE) ->
			store(DENIED, false);
			found = broken(REQUEST);
			mode = STAY
		/* taskshared_delay_begin() */
		:: (!is_active || broken(ACTIVE)) && (!owed || broken(OWED)) && !sig ->
			need = 0;
			mode = BEGIN
		/* TASKSHARED_REFUSED_* */
		:: !is_active || broken(ACTIVE) -> found = false; mode = STAY
		fi
	fi
}

/* Behind the barrier; with taskshared_cap_arm(), taskshared_count(), and the way back. */
inline delay_begin()
{
	found = false;
	if
	/* Somebody waits, or cap->ready is not set. */
	:: need = NOW; mode = STAY
	:: !urgent ->
		/* Delays are not chained, and a handler runs on none of an older request. */
		assert(!is_active && !owed && passed && !before);
		timer = (timer == NEW && !broken(CAP) -> OLD : timer);
		work = work || !broken(CAP);
		expired = false;
		is_active = true;
		passed = false;
		running++;
		store(GRANTED, true);
		seen = (at_entry -> true : seen);
		mode = LOOP
	fi
}

/* The end of both hooks if schedule() is not skipped. */
inline hook_stay()
{
	if
	:: live && !broken(HOOK) -> delay_pass()
	:: else
	fi;
	seen = live && !broken(SEEN) && (!syscall || !at_entry);
	decided = live && !syscall;
	hooked = live;
	mode = PASS
}

/* taskshared_hook_thread() from elsewhere; the probe at the call does not see that. */
inline hook_elsewhere()
{
	hooked = live && at_entry;
	if
	:: live && at_entry && busy && !broken(ELSEWHERE) -> delay_pass(); seen = false
	:: else
	fi
}

/* taskshared_sched_out() */
inline sched_out()
{
	/* taskshared_health_lost(): not for a pass that was decided on */
	assert(word != REQ || asleep || syscall || seen || !decided);
	if
	:: busy && !broken(OUT) -> seen = false; delay_pass()
	:: else
	fi
}

/* taskshared_cap_start() and taskshared_delay_confirm() */
inline cap_start()
{
	work = false; line = false; timer = NEW;
	need = (on && is_active && urgent && !broken(CONFIRM) -> NOW : need)
}

/* taskshared_cap_fire(), taskshared_delay_expire() and taskshared_cap_preempts() */
inline cap_fire()
{
	line = false;
	if
	:: !on || !is_active -> timer = 0
	/* An earlier delay's time has come, but not yet the newest one's: HRTIMER_RESTART. */
	:: on && is_active && timer == OLD && !broken(LEFTOVER) -> timer = NEW
	:: on && is_active ->
		/* With the fault it may be too early. */
		assert(timer == NEW || !broken(LEFTOVER));
		timer = 0;
		if
		:: delay_passed -> delay_pass()
		:: else ->
			expired = true;
			need = (broken(EXPIRE) -> need : NOW);
			if
			:: mode == USER
			:: mode != USER && preempts && !pinned -> delay_pass()
			/* taskshared_cap_watch(): HRTIMER_RESTART */
			:: mode != USER && !(preempts && !pinned) ->
				timer = (broken(WATCH) -> 0 : NEW)
			fi
		fi
	fi
}

/* preempt_schedule_irq(), preempt_schedule(): no hook sees it. */
inline preempt()
{
	if
	:: preempts && !pinned && need == NOW -> hooked = false; schedule()
	:: else
	fi
}

inline schedule()
{
	back = mode; mode = PICK
}

inline resume()
{
	mode = back; back = KERNEL; decided = false; hooked = false
}

/* irqentry_exit() */
inline irq_exit()
{
	if
	:: mode == USER -> mode = LOOP
	:: mode == OFF -> row = true
	:: else -> row = true; preempt()
	fi
}

#define step(condition)	!interrupt && (condition) -> row = false

/* The thread, and the interrupts and the scheduler of its CPU. */
active proctype cpu()
{
	atomic {
		c_code { fault = getenv("FAULT") ? atoi(getenv("FAULT")) : 0; };
		if
		:: preempts = true
		:: preempts = false
		fi;
		if
		:: at_entry = true
		:: at_entry = false
		fi
	};
	do
	/* A count of who waits can be seen by the time the self-interrupt comes. */
	:: atomic { irqs_on && work && !lock -> cap_start(); irq_exit() }
	:: atomic { irqs_on && (!work || lock) && !row && line -> cap_fire(); irq_exit() }
	:: atomic { irqs_on && (!work || lock) && !row && !line && ipi -> ipi = false; irq_exit() }

	/* Computes; what it writes in the meantime is among the stores of others(). */
	:: atomic { step(mode == USER) }
	/* An exception; rt_sigreturn() looks like one, too. */
	:: atomic { step(mode == USER); mode = KERNEL;
		if
		:: todo = SLEEP
		:: todo = PREEMPT_OFF
		:: todo = COND_RESCHED
		fi }
	/* taskshared_die(): a breakpoint */
	:: atomic { step(mode == USER); mode = KERNEL; todo = RETURN; delay_cut(true) }
	:: atomic { step(mode == USER); syscall = true; mode = KERNEL;
		if
		:: todo = YIELD
		:: todo = SCHED_YIELD
		:: todo = SLOT
		:: todo = SLEEP
		:: todo = PREEMPT_OFF
		:: todo = COND_RESCHED
		fi }

	/* TASKSHARED_IOC_YIELD */
	:: atomic { step(mode == KERNEL && todo == YIELD); delay_cut(false); todo = RETURN }
	/* taskshared_at_yield(): skips the system call if a delay was running. */
	:: atomic { step(mode == KERNEL && todo == SCHED_YIELD);
		todo = (live && is_active && !delay_passed -> RETURN : SLEEP);
		delay_cut(false) }
	/* taskshared_slot_go_dark(), in two steps; at exit and exec, too */
	:: atomic { step(mode == KERNEL && todo == SLOT && live); todo = DARK;
		if
		:: !broken(RELEASE) -> delay_cut(true)
		:: broken(RELEASE)
		fi }
	:: atomic { step(mode == KERNEL && todo == DARK); todo = RETURN;
		live = false; store(0, false);
		owed = false; seen = false; expired = false;
		preempt() }
	/* taskshared_slot_go_live() */
	:: atomic { step(mode == KERNEL && todo == SLOT && !live); todo = RETURN;
		live = true; store(0, false) }
	/* schedule() in the midst of a system call or exception: sleeps, or was just woken. */
	:: atomic { step(mode == KERNEL && todo == SLEEP); todo = RETURN; hook_elsewhere();
		if
		:: asleep = true
		:: true
		fi;
		schedule() }
	/* preempt_enable() */
	:: atomic { step(mode == KERNEL && todo == PREEMPT_OFF); todo = RETURN; preempt() }
	/* __cond_resched(): no hook sees it. */
	:: atomic { step(mode == KERNEL && todo == COND_RESCHED); todo = RETURN;
		if
		:: need == NOW && !preempts -> hooked = false; schedule()
		:: else
		fi }
	:: atomic { step(mode == KERNEL && todo == RETURN); mode = LOOP }

	/* exit_to_user_mode_loop() */
	:: atomic { step(mode == LOOP && need); mode = CALL }
	:: atomic { step(mode == LOOP && !need && sig); mode = SIGNAL }
	:: atomic { step(mode == LOOP && !need && !sig); mode = USER; syscall = false }
	:: atomic { step(mode == CALL); hook_loop() }
	:: atomic { step(mode == BEGIN); delay_begin() }
	:: atomic { step(mode == STAY); hook_stay() }
	:: atomic { step(mode == PASS); mode = LOOP; schedule() }
	/* taskshared_slot_signal(), in two steps */
	:: atomic { step(mode == SIGNAL); before = live && word == REQ;
		if
		:: !broken(HANDLER) -> delay_cut(true)
		:: broken(HANDLER)
		fi;
		mode = TAKE }
	:: atomic { step(mode == TAKE); assert(!is_active);
		if
		:: !live || word != REQ || broken(TAKE)
		:: live && word == REQ && !broken(TAKE) -> store(0, false)
		/* There is no handler for it. */
		:: before = false
		fi;
		sig = false; mode = LOOP }

	/*
	 * __schedule(): the same thread again, or another one; whoever is of a higher
	 * class comes first. In OFF: taskshared_sched_in()
	 */
	:: atomic { step(mode == PICK && !lock && !asleep && !urgent);
		need = 0; passed = true;
		/* Through the scheduler is the end of it, if any hook sees that. */
		assert(!is_active || !hooked);
		resume() }
	:: atomic { step(mode == PICK && !lock);
		need = 0; passed = true; mode = OFF;
		if
		:: live -> sched_out()
		:: else
		fi }
	:: atomic { step(mode == OFF && urgent); urgent = false }
	:: atomic { step(mode == OFF && !urgent); asleep = false; resume() }
	od
}

/* resched_curr(): who finds the flag set sends no interrupt. */
inline resched_curr()
{
	ipi = (need == NOW -> ipi : true);
	need = NOW
}

/* A task above the fair class comes to wait; without a barrier between the two steps. */
active proctype waiter()
{
	do
	:: atomic { mode != OFF && !urgent -> lock = true };
		if
		:: urgent = true; atomic { resched_curr(); lock = false }
		:: atomic { resched_curr() }; atomic { urgent = true; lock = false }
		fi
	od
}

/* The process in user mode, the tick, fair tasks that come, signals, any interrupt. */
active proctype others()
{
	do
	:: atomic { store(0, false) }
	:: atomic { store(REQ, false) }
	:: atomic { store(GRANTED, false) }
	:: atomic { store(DENIED, false) }
	:: atomic { mode != OFF && !lock && !need -> need = LAZY }
	:: atomic { mode != OFF && !lock -> resched_curr() }
	:: sig = true
	:: ipi = true
	od
}

active proctype clock()
{
	do
	:: atomic { timer && !line -> line = true }
	od
}

#ifndef LIVENESS
/* What holds whenever the CPU is not inside the module. */
active proctype invariants()
{
	do
	:: d_step { mode != BEGIN && mode != STAY ->
		/* granted = yielded + expired + ended + active; each request is counted */
		assert(running == is_active && !found);
		/* No delay without an armed cap, unless it was reached: then comes the pass. */
		assert(!is_active || work || timer == NEW ||
		       (expired && (need == NOW || mode == CALL)));
		/* Only the scheduler takes away the need-resched that the cap set. */
		assert(!is_active || !expired || need == NOW || passed);
		/* What a delay kept from the scheduler it gets back. */
		assert(passed || is_active || need == NOW || mode == PASS || mode == PICK);
		/* No delay outlasts the stay on the CPU, or the slot. */
		assert(!is_active || on);
		/* GRANTED does not outlast the delay. */
		assert(!ours || is_active);
		/* Nobody of a higher class waits for the cap. */
		assert(!is_active || !urgent || lock || work || need == NOW) }
	od
}

#else
/* A delay always ends. */
ltl ends { [] <> !is_active }
/* Who is of a higher class comes to run. */
ltl served { [] (urgent -> <> !urgent) }
#endif
