/*
 * A libevent program that knows nothing of tacho: uses each kind of callback and counts
 * the calls itself. event.py runs it alone and under the hooks and compares.
 *
 * Prints for each of its functions `call NAME KIND ADDRESS COUNT`, for each wake
 * `wake TASK COUNT`, and whatever else must not change as `is NAME VALUE`.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <event2/event_compat.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <event2/thread.h>

static struct event_base *base;

/* One function of this program that libevent calls. */
struct counted {
	const char *name, *kind;
	const void *function;
	unsigned calls;
};
static struct counted counts[64];
static unsigned count_used;

static void count(const char *name, const char *kind, const void *function)
{
	unsigned i = 0;

	while (i < count_used && (counts[i].function != function || strcmp(counts[i].kind, kind)))
		i++;
	if (i == count_used)
		counts[count_used++] = (struct counted){name, kind, function, 0};
	__atomic_fetch_add(&counts[i].calls, 1, __ATOMIC_RELAXED);
}
#define COUNT(kind, function) count(#function, kind, (const void *)(function))
#define IS(name, value) printf("is %s %ld\n", name, (long)(value))

static void wakes(const void *task, unsigned n)
{
	printf("wake %p %u\n", task, n);
}

static const struct timeval soon = {0, 1000};

static void run_for_ms(long ms)
{
	struct timeval t = {ms / 1000, ms % 1000 * 1000};

	event_base_loopexit(base, &t);
	event_base_dispatch(base);
}

/* ---------------------------------------------------------------- events */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	char c;

	COUNT(what & EV_TIMEOUT ? "event timer" : "event", on_readable);
	if (what & EV_READ && read(fd, &c, 1) == 1 && c == 'z')
		event_base_loopbreak(base);
	if (what & EV_TIMEOUT)
		event_base_loopbreak(base);
	if (arg != &base)
		IS("argument-of-on_readable", 0);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	COUNT("event", on_writable);
	(void)what;
	if (write(fd, "abz", 3) != 3)
		abort();
	event_free(arg); /* its own event: event_self_cbarg */
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	int *left = arg;

	COUNT("event timer", on_timer);
	(void)fd, (void)what;
	if (!--*left)
		event_base_loopbreak(base);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	int *left = arg;

	COUNT("event signal", on_signal);
	(void)what;
	if (number == SIGUSR1 && !--*left)
		event_base_loopbreak(base);
	else
		raise(SIGUSR1);
}

static void on_active(evutil_socket_t fd, short what, void *arg)
{
	unsigned *seen = arg;

	COUNT("event", on_active);
	(void)fd, (void)what;
	++*seen;
}

static void on_once(evutil_socket_t fd, short what, void *arg)
{
	COUNT("event once", on_once);
	(void)fd, (void)what, (void)arg;
}

static void test_events(void)
{
	int pair[2], timers = 5, signals = 3;
	unsigned seen = 0;
	event_callback_fn function;
	struct event_base *b;
	evutil_socket_t fd;
	struct event *read_event, *timer, *sig, *user, copy;
	short events;
	void *arg;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	read_event = event_new(base, pair[0], EV_READ | EV_PERSIST, on_readable, &base);
	IS("get_callback", event_get_callback(read_event) == on_readable);
	event_get_assignment(read_event, &b, &fd, &events, &function, &arg);
	IS("get_assignment", b == base && fd == pair[0] && events == (EV_READ | EV_PERSIST) &&
				     function == on_readable && arg == &base);
	event_get_assignment(read_event, NULL, NULL, NULL, NULL, NULL);
	event_add(read_event, NULL);
	event_add(event_new(base, pair[1], EV_WRITE, on_writable, event_self_cbarg()), NULL);
	IS("dispatch", event_base_dispatch(base));
	IS("again", event_add(read_event, &soon));
	IS("timeout", event_base_dispatch(base));
	event_free(read_event);

	timer = event_new(base, -1, EV_PERSIST, on_timer, &timers);
	event_add(timer, &soon);
	IS("loop", event_base_loop(base, 0));
	event_free(timer);

	sig = evsignal_new(base, SIGUSR1, on_signal, &signals);
	event_add(sig, NULL);
	raise(SIGUSR1);
	IS("signals", event_base_dispatch(base));
	event_free(sig);

	user = event_new(base, -1, EV_PERSIST, on_active, &seen);
	for (int i = 0; i < 7; i++) {
		event_active(user, EV_READ, 1);
		IS("active", event_base_loop(base, EVLOOP_NONBLOCK));
	}
	IS("seen", seen);
	wakes(user, 7);
	event_free(user);

	event_base_once(base, -1, EV_TIMEOUT, on_once, NULL, NULL);
	event_base_once(base, -1, EV_TIMEOUT, on_once, NULL, &soon);
	event_once(pair[1], EV_WRITE, on_once, NULL, NULL);
	run_for_ms(20);

	/* Memory that is assigned again, and an event that moves. */
	seen = 0;
	for (int i = 0; i < 4; i++) {
		struct event e;
		int one = 1;

		if (i % 2)
			event_set(&e, -1, 0, on_active, &seen);
		else
			event_assign(&e, base, -1, 0, on_timer, &one);
		event_base_set(base, &e);
		copy = e;
		if (i % 2) {
			event_active(&copy, EV_READ, 1);
			event_base_loop(base, EVLOOP_NONBLOCK);
		} else {
			event_add(&copy, &soon);
			event_base_dispatch(base);
		}
	}
	IS("seen-copies", seen);
	wakes(&copy, 2);
	close(pair[0]);
	close(pair[1]);
}

static struct event *in_order[6];

static void on_priority(evutil_socket_t fd, short what, void *arg)
{
	COUNT("event", on_priority);
	(void)fd, (void)what;
	IS("priority", (long)(intptr_t)arg);
	if (arg == (void *)0) /* a more urgent one that comes in the middle */
		event_active(in_order[5], EV_READ, 1);
}

static void test_priorities(void)
{
	struct event_base *before = base;

	base = event_base_new();
	event_base_priority_init(base, 3);
	for (intptr_t i = 0; i < 6; i++) {
		in_order[i] = event_new(base, -1, 0, on_priority, (void *)i);
		event_priority_set(in_order[i], 2 - (int)i % 3);
		if (i < 5)
			event_active(in_order[i], EV_READ, 1);
	}
	IS("priorities", event_base_dispatch(base));
	for (int i = 0; i < 6; i++) {
		wakes(in_order[i], 1);
		event_free(in_order[i]);
	}
	event_base_free(base);
	base = before;
}

static struct event embedded;

static void on_finalized(struct event *event, void *arg)
{
	COUNT("event finalizer", on_finalized);
	/* A program may do this: it is its own event and its own function. */
	if (event == &embedded)
		event_get_callback(event);
	IS("finalized", arg == &embedded);
}

static void test_finalizers(void)
{
	event_free_finalize(0, event_new(base, -1, EV_PERSIST, on_active, &embedded), on_finalized);
	event_assign(&embedded, base, -1, EV_PERSIST, on_active, &embedded);
	event_finalize(0, &embedded, on_finalized);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* ---------------------------------------------------------- bufferevents */

static void on_read(struct bufferevent *bev, void *arg)
{
	char bytes[64];
	size_t n = bufferevent_read(bev, bytes, sizeof(bytes));

	COUNT("bufferevent read", on_read);
	if (arg)
		bufferevent_write(bev, bytes, n);
	else if (n && bytes[0] < 'f')
		bytes[0]++, bufferevent_write(bev, bytes, 1);
	else
		event_base_loopbreak(base);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	COUNT("bufferevent write", on_written);
	(void)bev, (void)arg;
}

static void on_bufferevent(struct bufferevent *bev, short what, void *arg)
{
	COUNT("bufferevent event", on_bufferevent);
	(void)bev, (void)arg;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		event_base_loopbreak(base);
}

/* Two ends send a letter to and fro. */
static void play(struct bufferevent *bev[2])
{
	bufferevent_data_cb r, w;
	bufferevent_event_cb e;
	void *arg;

	bufferevent_setcb(bev[0], on_read, on_written, on_bufferevent, NULL);
	bufferevent_setcb(bev[1], on_read, NULL, on_bufferevent, &base);
	bufferevent_getcb(bev[0], &r, &w, &e, &arg);
	IS("getcb", r == on_read && w == on_written && e == on_bufferevent && !arg);
	bufferevent_getcb(bev[1], &r, &w, NULL, NULL);
	IS("getcb-null", r == on_read && !w);
	bufferevent_enable(bev[0], EV_READ | EV_WRITE);
	bufferevent_enable(bev[1], EV_READ | EV_WRITE);
	bufferevent_write(bev[0], "a", 1);
	IS("play", event_base_dispatch(base));
}

static void test_bufferevents(void)
{
	struct bufferevent *bev[2], *below;
	int pair[2];

	for (int options = 0; options < 2; options++) {
		int o = BEV_OPT_CLOSE_ON_FREE | (options ? BEV_OPT_DEFER_CALLBACKS : 0);

		evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		for (int i = 0; i < 2; i++) {
			evutil_make_socket_nonblocking(pair[i]);
			bev[i] = bufferevent_socket_new(base, pair[i], o);
		}
		play(bev);
		bufferevent_free(bev[1]);
		IS("eof", event_base_dispatch(base));
		bufferevent_free(bev[0]);
	}
	bufferevent_pair_new(base, BEV_OPT_DEFER_CALLBACKS, bev);
	play(bev);
	/* libevent compares what is registered with a function of its own here. */
	below = bev[0];
	bev[0] = bufferevent_filter_new(below, NULL, NULL, 0, NULL, NULL);
	play(bev);
	bufferevent_free(bev[0]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	{
		bufferevent_event_cb e;

		bufferevent_getcb(below, NULL, NULL, &e, NULL);
		IS("filter-let-go", e == NULL);
	}
	bufferevent_setcb(below, on_read, NULL, NULL, &base);
	bufferevent_trigger(below, EV_READ, BEV_TRIG_IGNORE_WATERMARKS);
	event_base_loop(base, EVLOOP_NONBLOCK);
	wakes(below, 1);
	bufferevent_free(below);
	bufferevent_free(bev[1]);
}

/* --------------------------------------------------- listeners and HTTP */

static struct sockaddr_in any_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static int port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &size);
	return ntohs(a.sin_port);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *address,
		      int size, void *arg)
{
	int *left = arg;

	COUNT("evconnlistener", on_accept);
	(void)l;
	IS("accept", address->sa_family == AF_INET && size == sizeof(struct sockaddr_in));
	close(fd);
	if (!--*left)
		event_base_loopbreak(base);
}

static void test_listeners(void)
{
	struct sockaddr_in a = any_port();
	int left = 3;
	struct evconnlistener *l = evconnlistener_new_bind(
		base, on_accept, &left, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 5,
		(struct sockaddr *)&a, sizeof(a));

	a.sin_port = htons(port_of(evconnlistener_get_fd(l)));
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		IS("connect", connect(fd, (struct sockaddr *)&a, sizeof(a)));
		close(fd);
	}
	IS("accepted", event_base_dispatch(base));
	evconnlistener_free(l);
}

static void on_request(struct evhttp_request *r, void *arg)
{
	struct evbuffer *b = evbuffer_new();

	COUNT("evhttp request", on_request);
	evbuffer_add_printf(b, "%s", (const char *)arg);
	evhttp_send_reply(r, 200, "OK", b);
	evbuffer_free(b);
}

static void on_sent(struct evhttp_connection *c, void *arg)
{
	COUNT("evhttp sent", on_sent);
	(void)c;
	evhttp_send_reply_end(arg);
}

static void on_chunked_request(struct evhttp_request *r, void *arg)
{
	struct evbuffer *b = evbuffer_new();

	COUNT("evhttp request", on_chunked_request);
	(void)arg;
	evhttp_send_reply_start(r, 200, "OK");
	evbuffer_add_printf(b, "chunk");
	evhttp_send_reply_chunk_with_cb(r, b, on_sent, r);
	evbuffer_free(b);
}

static int on_headers(struct evhttp_request *r, void *arg)
{
	COUNT("evhttp headers", on_headers);
	(void)r, (void)arg;
	return 0;
}

static void on_chunk(struct evhttp_request *r, void *arg)
{
	COUNT("evhttp chunk", on_chunk);
	(void)r, (void)arg;
}

static void on_response(struct evhttp_request *r, void *arg)
{
	int *left = arg;

	COUNT("evhttp response", on_response);
	IS("response", evhttp_request_get_response_code(r));
	if (!--*left)
		event_base_loopbreak(base);
}

static void on_close(struct evhttp_connection *c, void *arg)
{
	COUNT("evhttp close", on_close);
	(void)c, (void)arg;
}

static void test_http(void)
{
	struct evhttp *http = evhttp_new(base);
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	struct evhttp_connection *c = evhttp_connection_base_new(
		base, NULL, "127.0.0.1", port_of(evhttp_bound_socket_get_fd(bound)));
	int left = 12;

	IS("set_cb", evhttp_set_cb(http, "/chunks", on_chunked_request, NULL));
	IS("set_cb-twice", evhttp_set_cb(http, "/chunks", on_chunked_request, NULL));
	evhttp_set_gencb(http, on_request, "text");
	evhttp_connection_set_closecb(c, on_close, NULL);
	for (int i = 0; i < 12; i++) {
		struct evhttp_request *r = evhttp_request_new(on_response, &left);

		evhttp_request_set_header_cb(r, on_headers);
		if (i % 3 == 0)
			evhttp_request_set_chunked_cb(r, on_chunk);
		IS("make_request",
		   evhttp_make_request(c, r, EVHTTP_REQ_GET, i % 3 ? "/other" : "/chunks"));
	}
	IS("http", event_base_dispatch(base));
	evhttp_connection_free(c);
	evhttp_free(http);
}

/* ------------------------------------------------------------------- DNS */

static void on_question(struct evdns_server_request *r, void *arg)
{
	struct in_addr a = {htonl(0x0a000001)};

	COUNT("evdns server", on_question);
	(void)arg;
	for (int i = 0; i < r->nquestions; i++)
		if (r->questions[i]->type == EVDNS_TYPE_A)
			evdns_server_request_add_a_reply(r, r->questions[i]->name, 1, &a, 60);
	evdns_server_request_respond(r, 0);
}

static void on_answer(int result, char type, int n, int ttl, void *addresses, void *arg)
{
	int *left = arg;

	COUNT("evdns", on_answer);
	IS("answer", result == 0 && type == DNS_IPv4_A && n == 1 && ttl == 60 &&
			     *(uint32_t *)addresses == htonl(0x0a000001));
	if (!--*left)
		event_base_loopbreak(base);
}

static void on_addrinfo(int result, struct evutil_addrinfo *list, void *arg)
{
	int *left = arg;

	COUNT("evdns getaddrinfo", on_addrinfo);
	IS("addrinfo", result == 0 && list->ai_family == AF_INET);
	evutil_freeaddrinfo(list);
	if (!--*left)
		event_base_loopbreak(base);
}

static void test_dns(void)
{
	struct evutil_addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct sockaddr_in a = any_port();
	struct evdns_base *dns = evdns_base_new(base, 0);
	struct evdns_server_port *server;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	int left = 8;
	char text[64];

	bind(fd, (struct sockaddr *)&a, sizeof(a));
	evutil_make_socket_nonblocking(fd);
	server = evdns_add_server_port_with_base(base, fd, 0, on_question, NULL);
	snprintf(text, sizeof(text), "127.0.0.1:%d", port_of(fd));
	IS("nameserver", evdns_base_nameserver_ip_add(dns, text));
	evdns_base_set_option(dns, "randomize-case:", "0");
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "host%d.test", i);
		evdns_base_resolve_ipv4(dns, text, DNS_QUERY_NO_SEARCH, on_answer, &left);
	}
	for (int i = 0; i < 3; i++)
		evdns_getaddrinfo(dns, "name.test", "80", &hints, on_addrinfo, &left);
	IS("dns", event_base_dispatch(base));
	evdns_base_free(dns, 0);
	evdns_close_server_port(server);
	close(fd);
}

/* --------------------------------------------------------- threads, forks */

#define THREADS 4
#define ROUNDS 2000
static struct event_base *bases[THREADS];
static struct event *knocks[THREADS];
static unsigned knocked[THREADS];

/* Each thread knocks at the next, which answers by going on to the one after. */
static void on_knock(evutil_socket_t fd, short what, void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;

	COUNT("event", on_knock);
	(void)fd, (void)what;
	if (knocked[i]++ < ROUNDS)
		event_active(knocks[(i + 1) % THREADS], EV_READ, 1);
	else
		event_base_loopbreak(bases[i]);
	if (knocked[i] == ROUNDS + 1 && i + 1 < THREADS)
		event_active(knocks[i + 1], EV_READ, 1);
}

static void *run_base(void *arg)
{
	event_base_loop(bases[(uintptr_t)arg], EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++) {
		bases[i] = event_base_new();
		knocks[i] = event_new(bases[i], -1, EV_PERSIST, on_knock, (void *)i);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run_base, (void *)i);
	event_active(knocks[0], EV_READ, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		IS("knocked", knocked[i]);
		wakes(knocks[i], ROUNDS + 1);
		event_free(knocks[i]);
		event_base_free(bases[i]);
	}
}

static void report(void)
{
	for (unsigned i = 0; i < count_used; i++)
		printf("call %s %p %u %s\n", counts[i].name, counts[i].function, counts[i].calls,
		       counts[i].kind);
	fflush(stdout);
}

static void on_fork(evutil_socket_t fd, short what, void *arg)
{
	static int timers = 4;
	int status;
	struct event *timer;
	pid_t child;

	COUNT("event", on_fork);
	(void)fd, (void)what, (void)arg;
	fflush(stdout);
	child = fork();
	if (child) {
		waitpid(child, &status, 0);
		IS("child", status);
		return;
	}
	count_used = 0;
	event_reinit(base);
	timer = event_new(base, -1, EV_PERSIST, on_timer, &timers);
	event_add(timer, &soon);
}

/* A server that forks in a callback, and the child goes on from there. */
static void test_fork(void)
{
	struct event *e = event_new(base, -1, 0, on_fork, NULL);

	event_active(e, EV_READ, 1);
	IS("forked", event_base_dispatch(base));
	printf("in %s\n", count_used == 1 && counts[0].function == on_fork ? "parent" : "child");
	wakes(e, count_used == 1 && counts[0].function == on_fork);
	event_free(e);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (argc > 1 && !strcmp(argv[1], "threads"))
		evthread_use_pthreads();
	base = event_init();
	if (argc > 1 && !strcmp(argv[1], "threads")) {
		test_threads();
	} else if (argc > 1 && !strcmp(argv[1], "fork")) {
		test_fork();
	} else {
		test_events();
		test_priorities();
		test_finalizers();
		test_bufferevents();
		test_listeners();
		test_http();
		test_dns();
	}
	event_base_free(base);
	report();
	return 0;
}
