# make help lists the targets. Each variant (release, asan, tsan, cov) has its own build/ folder.
SHELL := /bin/bash
V ?= release
B := build/$(V)
PKGS := fcgi jansson libcurl sqlite3 libuv libmd libseccomp

# The layers, highest first: an archive per folder, linked in this order.
LAYERS := fcgi/master fcgi/edge fcgi/mcp fcgi/runner fcgi/backend fcgi/net store fcgi/wire fcgi/conf fcgi/base
SRC  := $(sort $(foreach d,$(LAYERS),$(shell find $(d) 2>/dev/null -name '*.c')))
HDR  := $(sort $(shell find fcgi store 2>/dev/null -name '*.h'))
AGENT_SRC := $(sort $(wildcard fcgi/agent/*.c)) fcgi/wire/agentproto.c
LIBS := $(foreach d,$(LAYERS),$(if $(filter $(d)/%,$(SRC)),$(B)/$(subst /,_,$(d)).a))
UNIT := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/unit/*/test_*.c)))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
ALL_C := $(SRC) $(wildcard fcgi/main.c fcgi/agent/*.c tests/unit/*/*.c tests/fuzz/*.c tests/bench/*.c)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wundef -Wvla -Walloca -Wwrite-strings \
	-Wcast-align -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wimplicit-fallthrough -Wconversion \
	-Wnull-dereference -Wdouble-promotion -Wframe-larger-than=16384 -Werror
HARD := -fstack-protector-strong -fstack-clash-protection -fPIE -fno-common \
	-fno-strict-aliasing -fno-delete-null-pointer-checks -D_FORTIFY_SOURCE=2
HARDLD := -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed
ifeq ($(shell uname -m),x86_64)
HARD += -fcf-protection=full
endif
OPT_release := -O2 -g $(HARD)
LD_release  := $(HARDLD)
OPT_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LD_asan  := -fsanitize=address,undefined
OPT_tsan := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
LD_tsan  := -fsanitize=thread
OPT_cov  := -O0 -g --coverage
LD_cov   := --coverage

CPPFLAGS += -D_GNU_SOURCE -Ifcgi -I. -include fcgi/base/banned.h $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
ALL_CFLAGS := -std=gnu17 $(WARN) $(OPT_$(V)) $(CFLAGS)
LDLIBS += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -pthread

.PHONY: build test check asan tsan fuzz coverage lint fmt clean help run dev bench unit e2e
.DELETE_ON_ERROR:
build: $(B)/mcp-sandboxd $(B)/mcp-sandboxd-agent ## compile the server and the agent
$(B)/mcp-sandboxd: $(B)/fcgi/main.o $(LIBS)
	$(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
# The agent runs in foreign images: static, libc only, never instrumented.
$(B)/mcp-sandboxd-agent: $(AGENT_SRC) $(wildcard fcgi/agent/*.h fcgi/wire/agentproto.h fcgi/base/*.h) $(B)/flags
	@mkdir -p $(@D)
	musl-gcc -static -Os -g0 -s -std=gnu17 $(filter-out -Wnull-dereference,$(WARN)) -D_GNU_SOURCE -Ifcgi -fno-asynchronous-unwind-tables -ffunction-sections -Wl,--gc-sections -o $@ $(AGENT_SRC)
define archive
$(B)/$(subst /,_,$(1)).a: $(patsubst %.c,$(B)/%.o,$(filter $(1)/%,$(SRC)))
	@rm -f $$@; ar rcs $$@ $$^
endef
$(foreach d,$(LAYERS),$(eval $(call archive,$(d))))
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(LIBS)
	$(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS) -lcmocka
$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
# Rebuild when the compiler or a flag changes.
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(CPPFLAGS) $(ALL_CFLAGS)' | cmp -s - $@ || \
	 echo '$(CC) $(CPPFLAGS) $(ALL_CFLAGS)' >$@
FORCE:
-include $(shell find $(B) -name '*.d' 2>/dev/null)

unit: $(UNIT) ## unit tests
	@scripts/run-tests $(UNIT)
fmt: ; clang-format -i $(ALL_C) $(HDR) ## format in place
clean: ; rm -rf build ## remove what was built
help: ; @sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) ## list the targets
