// SPDX-License-Identifier: MIT
/*
 * What a program makes of a section: compiled as programs are, then counted.
 */
#include "taskshared.h"

extern int work;
void with_section(void);
void without_section(void);
void with_nested_section(void);
void with_call(void (*function)(int *), int *p);
void without_call(void (*function)(int *), int *p);

void with_section(void)
{
	taskshared_begin();
	work++;
	taskshared_end();
}

void with_nested_section(void)
{
	taskshared_begin();
	taskshared_begin();
	work++;
	taskshared_end();
	taskshared_end();
}

void without_section(void)
{
	__asm__ volatile("" : : : "memory");
	work++;
	__asm__ volatile("" : : : "memory");
}

/* The compiler has to keep something over the section. */
void with_call(void (*function)(int *), int *p)
{
	taskshared_begin();
	function(p);
	taskshared_end();
	++*p;
}

void without_call(void (*function)(int *), int *p)
{
	__asm__ volatile("" : : : "memory");
	function(p);
	__asm__ volatile("" : : : "memory");
	++*p;
}
