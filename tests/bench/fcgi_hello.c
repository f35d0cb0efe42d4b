/* SPDX-License-Identifier: MIT */
/*
 * The yardstick for `ping`: the smallest libfcgi program, several accepting
 * threads on an inherited listener (descriptor 0), JSON of ping's size back.
 */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *serve(void *arg)
{
	FCGX_Request r;
	char body[1024];

	(void)arg;
	if (FCGX_InitRequest(&r, 0, 0) != 0)
		exit(1);
	while (FCGX_Accept_r(&r) >= 0) {
		while (FCGX_GetStr(body, sizeof body, r.in) > 0)
			continue;
		FCGX_PutS("Content-Type: application/json\r\n\r\n"
			  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
			  r.out);
		FCGX_Finish_r(&r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	long i, n = argc > 1 ? strtol(argv[1], NULL, 10) : 4;

	FCGX_Init();
	for (i = 0; i < n; i++)
		if (pthread_create(&t, NULL, serve, NULL) != 0)
			return 1;
	pthread_join(t, NULL);
	return 0;
}
