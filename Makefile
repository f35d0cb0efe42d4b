# make help lists the targets. Each variant (release, asan, tsan, cov) has its own build/ folder.
SHELL := /bin/bash
V ?= release
B := build/$(V)
# make Q= shows the commands.
Q ?= @
PKGS := fcgi jansson libcurl sqlite3 libuv libmd libseccomp yaml-0.1

# The layers, highest first: an archive per folder, linked in this order.
LAYERS := fcgi/master fcgi/edge fcgi/mcp fcgi/runner fcgi/backend fcgi/net store fcgi/wire fcgi/conf fcgi/base
SRC  := $(sort $(foreach d,$(LAYERS),$(shell find $(d) 2>/dev/null -name '*.c')))
HDR  := $(sort $(shell find fcgi store 2>/dev/null -name '*.h'))
AGENT_SRC := $(sort $(wildcard fcgi/agent/*.c)) fcgi/wire/agentproto.c
LIBS := $(foreach d,$(LAYERS),$(if $(filter $(d)/%,$(SRC)),$(B)/$(subst /,_,$(d)).a))
UNIT := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/unit/*/test_*.c)))
BENCH := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/*.c))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
ALL_C := $(SRC) $(wildcard fcgi/main.c fcgi/agent/*.c tests/unit/*/*.c tests/fuzz/*.c tests/bench/*.c tests/clients/*.c)

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
# -Wnull-dereference sees ghosts in what the sanitizers add.
OPT_asan := -Wno-null-dereference -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
LD_asan  := -fsanitize=address,undefined
OPT_tsan := -Wno-null-dereference -O1 -g -fno-omit-frame-pointer -fsanitize=thread
LD_tsan  := -fsanitize=thread
OPT_cov  := -O0 -g --coverage
LD_cov   := --coverage
# The fuzzer is clang's; warnings are gcc's business.
OPT_fuzz := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link -w
LD_fuzz  := -fsanitize=address,undefined
ifeq ($(V),fuzz)
CC := clang
endif

CPPFLAGS += -D_GNU_SOURCE -Ifcgi -I. -include fcgi/base/banned.h $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
ALL_CFLAGS := -std=gnu17 $(WARN) $(OPT_$(V)) $(CFLAGS)
LDLIBS += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -pthread

.PHONY: build agents unit unit-programs e2e clients test test-kubernetes asan tsan corpora fuzz fuzzers lint check coverage bench fmt docs compdb \
	install run dev bootstrap clean help docker-build docker-build-sandbox docker-run
.DELETE_ON_ERROR:
.SECONDARY:
build: $(B)/mcp-sandboxd $(B)/mcp-sandboxd-agent ## compile the server and the agent
$(B)/mcp-sandboxd: $(B)/fcgi/main.o $(LIBS)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
$(B)/tests/clients/fixtures.o: tests/clients/fixtures.json
# With the tools, prompts and resources that the conformance suite asks for.
$(B)/mcp-sandboxd-fixtures: $(B)/fcgi/main.o $(B)/tests/clients/fixtures.o $(LIBS)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
# The agent runs in foreign images: static, libc only, never instrumented.
$(B)/mcp-sandboxd-agent: $(AGENT_SRC) $(wildcard fcgi/agent/*.h fcgi/wire/agentproto.h fcgi/base/*.h) $(B)/flags
	@mkdir -p $(@D)
	$(Q)echo '  AGENT $@'; musl-gcc -static -Os -g0 -s -std=gnu17 $(filter-out -Wnull-dereference,$(WARN)) -D_GNU_SOURCE -Ifcgi -fno-asynchronous-unwind-tables -ffunction-sections -Wl,--gc-sections -o $@ $(AGENT_SRC)
# For nodes of another architecture, by Debian's cross compilers: with glibc, there is no musl.
CROSS_amd64 := x86_64-linux-gnu-gcc
CROSS_arm64 := aarch64-linux-gnu-gcc
OTHER := $(if $(filter aarch64,$(shell uname -m)),amd64,arm64)
$(B)/mcp-sandboxd-agent.%: $(AGENT_SRC) $(wildcard fcgi/agent/*.h fcgi/wire/agentproto.h fcgi/base/*.h) $(B)/flags
	@mkdir -p $(@D)
	$(Q)echo '  AGENT $@'; $(CROSS_$*) -static -Os -g0 -s -std=gnu17 $(filter-out -Wnull-dereference,$(WARN)) -D_GNU_SOURCE -Ifcgi -fno-asynchronous-unwind-tables -ffunction-sections -Wl,--gc-sections -o $@ $(AGENT_SRC)
# The same program by the variant's compiler, for its tests under the sanitizers.
AGENT_OBJ := $(patsubst %.c,$(B)/%.o,$(AGENT_SRC))
$(B)/agent-plain: $(AGENT_OBJ)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $^
$(B)/fcgi_agent.a: $(filter-out %/main.o $(B)/fcgi/wire/%,$(AGENT_OBJ))
	$(Q)rm -f $@; ar rcs $@ $^
$(B)/tests/unit/agent/%: $(B)/tests/unit/agent/%.o $(B)/fcgi_agent.a $(LIBS) | $(B)/agent-plain $(B)/mcp-sandboxd-agent
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $< $(B)/fcgi_agent.a -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS) -lcmocka
$(patsubst %.c,$(B)/%,$(wildcard tests/unit/runner/*.c)): | $(B)/mcp-sandboxd-agent
define archive
$(B)/$(subst /,_,$(1)).a: $(patsubst %.c,$(B)/%.o,$(filter $(1)/%,$(SRC)))
	$(Q)rm -f $$@; ar rcs $$@ $$^
endef
$(foreach d,$(LAYERS),$(eval $(call archive,$(d))))
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(LIBS)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS) -lcmocka
$(B)/tests/bench/%: $(B)/tests/bench/%.o $(LIBS)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)echo '  CC    $<'; $(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
# Rebuild when the compiler or a flag changes.
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(CPPFLAGS) $(ALL_CFLAGS)' | cmp -s - $@ || \
	 echo '$(CC) $(CPPFLAGS) $(ALL_CFLAGS)' >$@
FORCE:
-include $(shell find $(B) -name '*.d' 2>/dev/null)

# A fuzz target with the fuzzer (V=fuzz), or with a main that replays a corpus.
$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(LIBS)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
$(B)/tests/fuzz/replay_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(LIBS)
	$(Q)echo '  LINK  $@'; $(CC) $(LD_$(V)) -o $@ $< $(B)/tests/fuzz/replay.o -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)

unit: $(UNIT) ## unit tests
	@scripts/run-tests $(UNIT)
unit-programs: $(UNIT)
agents: build $(B)/mcp-sandboxd-agent.$(OTHER) ## the agent for the other architecture too, for clusters of both
e2e: build ## the whole server behind nginx, with real clients and real sandboxes
	@scripts/run-e2e
clients: build $(B)/mcp-sandboxd-fixtures ; @scripts/run-clients ## a story with every MCP client that can be run here, and the conformance suite
test: ; @scripts/test ## all set-up, then build, unit and e2e
test-kubernetes: ; @scripts/test-kubernetes ## the back end on a real cluster, which is built first, once
asan: ; @$(MAKE) --no-print-directory V=asan unit ## unit tests under ASan and UBSan
tsan: ; @$(MAKE) --no-print-directory V=tsan unit ## unit tests under TSan
corpora: ; @$(MAKE) --no-print-directory V=asan replay ## every fuzz corpus, under ASan and UBSan
replay: $(FUZZ:%=$(B)/tests/fuzz/replay_%) ; @scripts/replay $(B) $(FUZZ)
fuzz: ; @$(MAKE) --no-print-directory V=fuzz fuzzers ## fuzz each target for FUZZ_SECONDS (10)
fuzzers: $(FUZZ:%=$(B)/tests/fuzz/fuzz_%) ; @scripts/fuzz $(B) $(FUZZ)
lint: build ## layers, headers, format, static analysis, scripts, printed docs
	@LINT_FLAGS='-std=gnu17 $(CPPFLAGS)' LINT_C='$(ALL_C)' LINT_H='$(HDR)' LINT_BIN=$(B)/mcp-sandboxd scripts/lint
check: ## everything that must hold before landing (CHECK=... for a part)
	@scripts/bootstrap check
	@rc=0; for t in $(or $(CHECK),lint test clients asan corpora tsan); do echo "== $$t"; \
	 $(MAKE) --no-print-directory $$t || rc=1; done; exit $$rc
coverage: ; @$(MAKE) --no-print-directory V=cov unit && scripts/coverage build/cov ## lines run by the unit tests
bench: build $(BENCH) ; @scripts/bench ## measure, beside what it is compared with

run: ; @scripts/run ## install what is missing, build, serve on 127.0.0.1:8080
dev: ; @DEBUG_UI_ENABLED=true LOG_HTTP_REQUESTS=true LOG_MCP_REQUESTS=true LOG_TOOLCALLS=true scripts/run ## run, talkative
bootstrap: ; @scripts/bootstrap check ## install all that build, tests and checks need
docs: build ## print docs/configuration.md and .env.example
	$(B)/mcp-sandboxd config markdown >docs/configuration.md
	$(B)/mcp-sandboxd config env >.env.example
fmt: ; clang-format -i $(ALL_C) $(HDR) ## format in place
compdb: ## compile_commands.json for editors
	@{ sep='['; for f in $(ALL_C); do printf '%s\n{"directory": "%s", "file": "%s", "command": "cc -std=gnu17 %s -c %s"}' \
	 "$$sep" "$(CURDIR)" "$$f" "$(CPPFLAGS)" "$$f"; sep=','; done; echo; echo ']'; } >compile_commands.json

# BASE: what the images are made from; DOCKER_FLAGS: more for docker build.
docker_build = docker build $(if $(BASE),--build-arg BASE=$(BASE)) $(DOCKER_FLAGS)
IMAGE ?= mcp-sandboxd:latest
docker-build: ; $(docker_build) -t $(IMAGE) -f deploy/docker/server.Dockerfile . ## the server's image, from BASE
docker-build-sandbox: ; $(docker_build) -t mcp-sandbox:latest -f deploy/docker/sandbox.Dockerfile deploy/docker ## the sandboxes' image, from BASE
docker-run: docker-build ; @IMAGE=$(IMAGE) deploy/docker/run-dind ## the server's image, with a Docker engine in a container

prefix ?= /usr
libdir = $(DESTDIR)$(prefix)/lib/mcp-sandboxd
docdir = $(DESTDIR)$(prefix)/share/doc/mcp-sandboxd
install: build ## into DESTDIR and prefix (/usr)
	install -D -m 0755 -t $(libdir) $(B)/mcp-sandboxd $(wildcard $(B)/mcp-sandboxd-agent $(B)/mcp-sandboxd-agent.*)
	install -D -m 0755 -t $(libdir)/scripts scripts/render-nginx
	install -D -m 0644 -t $(libdir)/scripts scripts/lib.sh scripts/pair.sh
	install -D -m 0644 -t $(libdir) deploy/docker/sandbox.Dockerfile
	install -D -m 0644 -t $(libdir)/nginx nginx/*.in
	install -d $(DESTDIR)$(prefix)/sbin
	ln -sf ../lib/mcp-sandboxd/mcp-sandboxd $(DESTDIR)$(prefix)/sbin/mcp-sandboxd
	install -D -m 0644 -t $(DESTDIR)$(prefix)/lib/systemd/system deploy/systemd/mcp-sandboxd.service
	install -D -m 0644 -t $(docdir) README.md LICENSE .env.example
	install -D -m 0644 -t $(docdir)/docs docs/*.md
	install -D -m 0644 -t $(docdir)/docs/decisions docs/decisions/*.md
clean: ; rm -rf build compile_commands.json ## remove what was built
help: ; @sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | sort ## list the targets
