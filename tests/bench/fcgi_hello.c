/* SPDX-License-Identifier: MIT */
/*
 * The yardstick for `ping`: the smallest libfcgi program, several accepting
 * threads on one listener, JSON of ping's size back.
 */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int listener;

static void *serve(void *arg)
{
	FCGX_Request r;
	char body[1024];

	(void)arg;
	if (FCGX_InitRequest(&r, listener, 0) != 0)
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
	long i, n;

	if (argc != 3) {
		fprintf(stderr, "usage: fcgi_hello SOCKET THREADS\n");
		return 1;
	}
	FCGX_Init();
	listener = FCGX_OpenSocket(argv[1], 1024);
	if (listener < 0 || chmod(argv[1], 0777) < 0) /* nginx is another user */
		return 1;
	n = strtol(argv[2], NULL, 10);
	for (i = 1; i < n; i++)
		if (pthread_create(&t, NULL, serve, NULL) != 0)
			return 1;
	serve(NULL);
	return 0;
}
