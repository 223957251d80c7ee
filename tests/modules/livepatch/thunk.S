/* SPDX-License-Identifier: GPL-2.0-only */
#include <linux/linkage.h>
#include <asm/ibt.h>
#include <asm/nospec-branch.h>

SYM_FUNC_START(livepatch_schedule)
	ENDBR
	ANNOTATE_RETPOLINE_SAFE
	jmp	*livepatch_rest(%rip)
	int3
SYM_FUNC_END(livepatch_schedule)
