/* SPDX-License-Identifier: MIT */
/*
 * Entry points of the rare halves of begin and end on x86-64. Called from inline
 * assembly that says it clobbers the vector registers, and nothing of the general
 * ones; with the stack at any alignment.
 */
#if defined(__x86_64__) && !defined(__ILP32__)

#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.macro	stub name, function
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	_CET_ENDBR
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	and	$-16, %rsp
	call	\function
	lea	-72(%rbp), %rsp
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	.hidden	section_begin
	.hidden	section_end
	stub	taskshared_begin_slow, section_begin
	stub	taskshared_end_slow, section_end

#endif

	.section .note.GNU-stack, "", @progbits
