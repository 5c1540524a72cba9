/* ledger_uv SECONDS: a server of libuv (ledger.py). */
#include <uv.h>

#include "ledger_servers.h"

static void on_request(uv_poll_t *p, int status, int events)
{
	(void)status, (void)events;
	while (answer((int)(intptr_t)p->data))
		;
}

static void on_tick(uv_timer_t *t)
{
	if (atomic_load(&done))
		uv_stop(t->loop);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	uv_loop_t *loop = uv_default_loop();
	static uv_poll_t polls[CONNECTIONS];
	uv_timer_t tick;
	pthread_t asker = begin_asking(&seconds);

	for (int i = 0; i < CONNECTIONS; i++) {
		uv_poll_init(loop, &polls[i], server_ends[i]);
		polls[i].data = (void *)(intptr_t)server_ends[i];
		uv_poll_start(&polls[i], UV_READABLE, on_request);
	}
	uv_timer_init(loop, &tick);
	uv_timer_start(&tick, on_tick, 50, 50);
	uv_run(loop, UV_RUN_DEFAULT);
	end_asking(asker);
	return 0;
}
