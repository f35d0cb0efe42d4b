/* SPDX-License-Identifier: MIT */
#include "backend/kubernetes/elfarch.h"

#include <elf.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned machine;
} arches[] = {{"amd64", EM_X86_64}, {"arm64", EM_AARCH64}};

const char *elfarch(const void *p, size_t n)
{
	const unsigned char *h = p;
	unsigned machine;
	size_t i;

	if (n < 20 || memcmp(h, ELFMAG, SELFMAG) != 0 || h[EI_CLASS] != ELFCLASS64 ||
	    h[EI_DATA] != ELFDATA2LSB)
		return NULL;
	machine = h[18] | (unsigned)h[19] << 8;
	for (i = 0; i < sizeof arches / sizeof *arches; i++)
		if (arches[i].machine == machine)
			return arches[i].name;
	return NULL;
}
