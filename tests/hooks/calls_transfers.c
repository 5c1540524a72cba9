/* Reading and writing on descriptors that never block, and on some that only look so. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "calls_subject.h"

#define USES TRANSFERS_USES

ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);

static int pair[2];

static void make_pair(int flags)
{
	need(!socketpair(AF_UNIX, SOCK_DGRAM | flags, 0, pair), "socketpair");
}

static ssize_t by_readv(int fd)
{
	char c;
	struct iovec part = {&c, 1};

	return readv(fd, &part, 1);
}

static ssize_t by_recv(int fd)
{
	char c;

	return recv(fd, &c, 1, 0);
}

static ssize_t by_recvfrom(int fd)
{
	char c;

	return recvfrom(fd, &c, 1, 0, NULL, NULL);
}

static ssize_t by_recvmsg(int fd)
{
	char c;
	struct iovec part = {&c, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	return recvmsg(fd, &message, 0);
}

static ssize_t by_recvmmsg(int fd)
{
	char c;
	struct iovec part = {&c, 1};
	struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};

	return recvmmsg(fd, &message, 1, 0, NULL);
}

static ssize_t by_read(int fd)
{
	char c;

	return read(fd, &c, 1);
}

static ssize_t by_read_chk(int fd)
{
	char c;

	return __read_chk(fd, &c, 1, 1);
}

/* Sends without a call that counts. */
static void use(ssize_t (*call)(int), int to, int from)
{
	for (int i = 0; i < USES; i++)
		need(syscall(SYS_write, to, "x", 1) == 1 && call(from) == 1, "a byte");
}

/* A pair that is known not to block. */
static void trusted_pair(void)
{
	make_pair(SOCK_NONBLOCK);
	use(by_recv, pair[0], pair[1]);
}

static void reopened(int number)
{
	make_pair(0);
	need(pair[1] == number || pair[0] == number, "the same number");
}

void transfers(void)
{
	struct sockaddr nameless = {.sa_family = AF_UNIX};
	char path[300];
	int blocking[2], file;

	turn();
	/* By then the rate of the clock is known. */
	usleep(200000);
	turn();
	make_pair(0);
	use(by_readv, pair[0], pair[1]);
	memcpy(blocking, pair, sizeof(blocking));

	/* It blocks again. */
	trusted_pair();
	need(!fcntl(pair[1], F_SETFL, 0), "F_SETFL");
	use(by_recvfrom, pair[0], pair[1]);

	/* The number is another's. */
	trusted_pair();
	file = pair[1];
	close(pair[1]);
	close(pair[0]);
	reopened(file);
	use(by_recvmsg, file == pair[1] ? pair[0] : pair[1], file);
	trusted_pair();
	file = pair[1];
	syscall(SYS_close, pair[1]);
	syscall(SYS_close, pair[0]);
	reopened(file);
	use(by_read_chk, file == pair[1] ? pair[0] : pair[1], file);

	/* The same, without close. */
	trusted_pair();
	need(dup2(blocking[1], pair[1]) == pair[1], "dup2");
	use(by_read, blocking[0], pair[1]);

	/* The same where nobody sees it: known after a slow poll. */
	trusted_pair();
	file = pair[1];
	need(!syscall(SYS_close_range, pair[0], pair[1], 0), "close_range");
	reopened(file);
	turn();
	usleep(20000);
	turn();
	use(by_recvmmsg, file == pair[1] ? pair[0] : pair[1], file);

	/* Nobody connects, and it does not wait for that. */
	file = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	need(!bind(file, &nameless, sizeof(nameless.sa_family)) && !listen(file, 1), "listen");
	need(accept4(file, NULL, NULL, 0) < 0, "nobody");

	/* A file always blocks, whatever its flags. */
	snprintf(path, sizeof(path), "%s", in_folder("file"));
	file = open(path, O_CREAT | O_WRONLY | O_NONBLOCK, 0600);
	need(file >= 0, "open");
	for (int i = 0; i < USES; i++)
		need(write(file, "x", 1) == 1, "write");
	turn();
}
