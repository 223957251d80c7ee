/* SPDX-License-Identifier: MIT */
/* Run a function one instruction at a time (x86-64). */
#ifndef STEP_H
#define STEP_H

#include <signal.h>
#include <string.h>

static volatile long steps;
static void (*volatile at_each_step)(void *context);

static void on_step(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	steps++;
	if (at_each_step)
		at_each_step(context);
}

/*
 * Returns the number of instructions from the call of @function to the one that
 * switches stepping off. Only differences of two such numbers mean something.
 */
__attribute__((noinline)) static long step_through(void (*function)(void))
{
	struct sigaction action, old;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_step;
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGTRAP, &action, &old);
	steps = 0;
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
			 "sub $256, %%rsp\n\t"
			 "and $-16, %%rsp\n\t"
			 "pushf\n\t"
			 "orl $0x100, (%%rsp)\n\t"
			 "popf\n\t"
			 "call *%0\n\t"
			 "pushf\n\t"
			 "andl $~0x100, (%%rsp)\n\t"
			 "popf\n\t"
			 "mov %%rbx, %%rsp\n\t"
			 :
			 : "r"(function)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9",
			   "r10", "r11", "cc", "memory");
	sigaction(SIGTRAP, &old, NULL);
	return steps;
}

#endif /* STEP_H */
