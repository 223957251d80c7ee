// SPDX-License-Identifier: MIT
/*
 * Things that happen between any two instructions of a section: a grant, the end
 * of a delay, a signal handler with a section of its own. On the device in
 * memory.
 */
#define _GNU_SOURCE
#include <ucontext.h>

#include "check.h"
#include "fake.h"
#include "step.h"

int work;
void with_section(void);
void without_section(void);
void with_nested_section(void);

static volatile long at;
static volatile int granted;

static void grant(void *context)
{
	struct task_sharedinfo *slot = taskshared_get_slot();

	(void)context;
	if (steps == at && slot &&
	    slot->sched_delay == TASK_PREEMPT_DELAY_REQ) {
		slot->sched_delay = TASK_PREEMPT_DELAY_GRANTED;
		granted++;
	}
}

static void every_grant_is_given_back(void)
{
	struct task_sharedinfo *slot;
	long total;
	int all = 0;

	fake_restart();
	with_section();
	slot = taskshared_get_slot();
	at_each_step = NULL;
	total = step_through(with_section);
	at_each_step = grant;
	for (at = 1; at <= total; at++) {
		granted = fake.yields = 0;
		step_through(with_section);
		CHECK_EQ(fake.yields, granted);
		CHECK_EQ(slot->sched_delay, 0);
		CHECK_EQ(taskshared_tls.nest, NEST_OUTSIDE);
		all += granted;
	}
	at_each_step = NULL;
	CHECK(all >= 3);
	printf("# %d grants at %ld places\n", all, total);
}

static volatile int handled;

/* The steps at which a handler could run. */
#define PLACES 100000
static long places[PLACES];
static volatile int n_places;

static void note_place(void *context)
{
	ucontext_t *uc = context;

	if (!sigismember(&uc->uc_sigmask, SIGUSR1) && n_places < PLACES)
		places[n_places++] = steps;
}

static void find_places(void (*function)(void))
{
	at_each_step = NULL;
	n_places = 0;
	at_each_step = note_place;
	step_through(function);
	at_each_step = NULL;
}

/* Not while signals are blocked: no handler would run then either. */
static void handler_section(void *context)
{
	ucontext_t *uc = context;

	if (steps != at || sigismember(&uc->uc_sigmask, SIGUSR1))
		return;
	handled++;
	with_nested_section();
}

static void handlers_anywhere(void)
{
	struct task_sharedinfo *slot;
	long total;

	fake_restart();
	with_section();
	slot = taskshared_get_slot();
	at_each_step = NULL;
	total = step_through(with_section);
	at_each_step = handler_section;
	handled = 0;
	for (at = 1; at <= total; at++) {
		step_through(with_section);
		CHECK_EQ(slot->sched_delay, 0);
		CHECK_EQ(taskshared_tls.nest, NEST_OUTSIDE);
	}
	at_each_step = NULL;
	CHECK_EQ(handled, total);
	CHECK_EQ(fake.yields, 0);
}

static void handlers_in_the_first_section(void)
{
	int i;

	fake_restart();
	find_places(with_section);
	handled = 0;
	for (i = 0; i < n_places && !check_failed; i++) {
		fake_restart();
		at = places[i];
		at_each_step = handler_section;
		step_through(with_section);
		at_each_step = NULL;
		CHECK(taskshared_get_slot());
		CHECK_EQ(taskshared_get_slot()->sched_delay, 0);
		CHECK_EQ(taskshared_tls.nest, NEST_OUTSIDE);
		CHECK_EQ(fake.slots, 1);
		CHECK_EQ(fake.opens, 1);
	}
	CHECK(handled > 10);
	printf("# handlers at %d places\n", handled);
}

static void handlers_in_detach(void)
{
	int i;

	fake_restart();
	with_section();
	find_places(taskshared_detach);
	handled = 0;
	for (i = 0; i < n_places && !check_failed; i++) {
		with_section();
		at = places[i];
		at_each_step = handler_section;
		step_through(taskshared_detach);
		at_each_step = NULL;
		with_section();
		CHECK(taskshared_get_slot());
		CHECK_EQ(taskshared_get_slot()->sched_delay, 0);
		CHECK_EQ(taskshared_tls.nest, NEST_OUTSIDE);
	}
	CHECK(handled > 5);
}

/* The slow half of end is called behind the compiler's back. */
static void registers_survive(void)
{
	unsigned long in[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	unsigned long *p = in;
	unsigned long i;

	fake_restart();
	with_section();
	taskshared_begin();
	taskshared_get_slot()->sched_delay = TASK_PREEMPT_DELAY_GRANTED;
	taskshared_tls.nest = NEST_OUTSIDE;
	__asm__ volatile("mov %0, %%rbx\n\t"
			 "mov 0(%%rbx), %%rax\n\t"
			 "mov 8(%%rbx), %%rcx\n\t"
			 "mov 16(%%rbx), %%rdx\n\t"
			 "mov 24(%%rbx), %%rsi\n\t"
			 "mov 32(%%rbx), %%rdi\n\t"
			 "mov 40(%%rbx), %%r8\n\t"
			 "mov 48(%%rbx), %%r9\n\t"
			 "mov 56(%%rbx), %%r10\n\t"
			 "mov 64(%%rbx), %%r11\n\t"
			 "lea -128(%%rsp), %%rsp\n\t"
			 "call taskshared_end_slow@PLT\n\t"
			 "lea 128(%%rsp), %%rsp\n\t"
			 "add %%rax, 0(%%rbx)\n\t"
			 "add %%rcx, 8(%%rbx)\n\t"
			 "add %%rdx, 16(%%rbx)\n\t"
			 "add %%rsi, 24(%%rbx)\n\t"
			 "add %%rdi, 32(%%rbx)\n\t"
			 "add %%r8, 40(%%rbx)\n\t"
			 "add %%r9, 48(%%rbx)\n\t"
			 "add %%r10, 56(%%rbx)\n\t"
			 "add %%r11, 64(%%rbx)"
			 :
			 : "r"(p)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9",
			   "r10", "r11", "cc", "memory");
	for (i = 0; i < 9; i++)
		CHECK_EQ(in[i], 2 * (i + 1));
	CHECK_EQ(fake.yields, 1);
}

int main(void)
{
	RUN(every_grant_is_given_back);
	RUN(handlers_anywhere);
	RUN(handlers_in_the_first_section);
	RUN(handlers_in_detach);
	RUN(registers_survive);
	return check_status;
}
