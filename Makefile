# SPDX-License-Identifier: MIT
#
# make        the library, and this list
# make demo   what the module does for a contended lock, in a guest
# make check  every test, on every kernel, in guests

BUILD ?= build

# The kernel that "make module" builds for.
KERNELRELEASE ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KERNELRELEASE)/build
# The kernel of "make demo" and "make vm": a name from tests/vm/kernels.tsv.
KERNEL ?= 6.12

PREFIX ?= /usr/local
DKMS ?= dkms

.PHONY: all help lib module check check-all lint demo vm install uninstall status clean \
	install-module install-lib uninstall-module uninstall-lib readme-table cost-table
all: lib help

help:
	@echo 'make demo       show what the module does for a contended lock, in a guest'
	@echo '                (KERNEL=6.12; KERNEL=6.1, 7.3: another kernel)'
	@echo 'make check      every test on every kernel, in guests'
	@echo '                (KERNELS="6.1 7.3", TESTS="delay slot": a part of it)'
	@echo 'make check-all  every test on every flavour of Debian kernels (an hour)'
	@echo 'make vm         a shell in a guest with the module loaded (KERNEL=7.3)'
	@echo 'make lint       style and static checks'
	@echo 'make lib        the library, into $(BUILD)/lib'
	@echo 'make module     the module for this kernel, into module/ (KDIR=...: for another)'
	@echo 'make install    module by dkms, library into $(PREFIX); as root'
	@echo '                (install-module, install-lib: one of them)'
	@echo 'make uninstall  the reverse; make status: what is installed and loaded'
	@echo 'make readme-table   put the results of the last "make check" into README.md'
	@echo 'make cost-table     measure what the module costs, and put that into README.md'
	@echo 'make clean      remove $(BUILD)/ and what was built in module/'

lib:
	@$(MAKE) --no-print-directory -C lib O=$(abspath $(BUILD))/lib

module:
	@test -d $(KDIR) || { echo 'no kernel headers in $(KDIR); on Debian: apt install linux-headers-$(KERNELRELEASE)' >&2; exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR)/module modules

check:
	@tests/check

check-all:
	@tests/vm/setup
	@tests/check-all

lint:
	@tests/check lint

demo:
	@tests/demo/run $(KERNEL)

vm:
	@tests/vm/setup
	@tests/vm/shell $(KERNEL)

# The module first: it says what is wrong before anything is put anywhere.
install: install-module install-lib
uninstall: uninstall-module uninstall-lib

install-module uninstall-module:
	@KERNELRELEASE=$(KERNELRELEASE) KDIR=$(KDIR) DKMS=$(DKMS) module/install $(@:-module=)

install-lib: lib
	@$(MAKE) --no-print-directory -C lib install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) O=$(abspath $(BUILD))/lib
	@[ -n '$(DESTDIR)' ] || /sbin/ldconfig

uninstall-lib:
	@$(MAKE) --no-print-directory -C lib uninstall PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)
	@[ -n '$(DESTDIR)' ] || /sbin/ldconfig

status:
	@DKMS=$(DKMS) module/install status
	@ls $(PREFIX)/lib/libtaskshared.so.*.* 2>/dev/null || echo 'library: not in $(PREFIX)/lib'

readme-table cost-table:
	@tests/$@

clean:
	rm -rf $(BUILD)
	@if [ -d $(KDIR) ]; then $(MAKE) -C $(KDIR) M=$(CURDIR)/module clean; fi
