// SPDX-License-Identifier: MIT
/*
 * What a section costs, counted in executed instructions.
 */
#include "check.h"
#include "step.h"
#include "taskshared.h"

int work;
void with_section(void);
void without_section(void);
void with_nested_section(void);
void with_call(void (*function)(int *), int *p);
void without_call(void (*function)(int *), int *p);

static void callee(int *p)
{
	++*p;
}

static void call_with(void)
{
	with_call(callee, &work);
}

static void call_without(void)
{
	without_call(callee, &work);
}

int main(void)
{
	long cost, inner, call;

	with_section(); /* attaches */
	cost = step_through(with_section) - step_through(without_section);
	inner = step_through(with_nested_section) - step_through(with_section);
	call = step_through(call_with) - step_through(call_without);
	printf("# instructions: begin + end %ld, nested pair %ld, around a call %ld\n",
	       cost, inner, call);
	return !(cost > 0 && cost <= 12 && inner <= 12 && call <= 12);
}
