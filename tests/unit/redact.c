/* Credentials in command lines are replaced, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/redact.h"

#define LINE 4096u

/* Arguments are written with '|' between them. */
static size_t arguments(char *out, const char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i <= n; i++)
		out[i] = text[i] == '|' ? 0 : text[i];
	return n + 1;
}

static const char *redacted(const char *text, int cut)
{
	static char line[LINE];
	char given[LINE];
	size_t n = arguments(given, text);

	tacho__command_line(line, sizeof(line), given, cut ? n - 1 : n, cut, 0);
	return line;
}

static unsigned compare(const char *text, const char *wanted, int cut)
{
	const char *got = redacted(text, cut);

	if (!strcmp(got, wanted))
		return 0;
	print_error("%s\n   gives %s\n  wanted %s\n", text, got, wanted);
	return 1;
}

/* `wanted` NULL: as it is. */
struct row {
	const char *text, *wanted;
};

static unsigned compare_all(const struct row *rows, size_t count, int cut)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < count; i++) {
		char same[LINE];

		arguments(same, rows[i].text);
		for (size_t k = 0; k < strlen(rows[i].text); k++)
			same[k] = same[k] ? same[k] : ' ';
		wrong += compare(rows[i].text, rows[i].wanted ? rows[i].wanted : same, cut);
	}
	return wrong;
}
#define COMPARE(rows, cut) \
	assert_int_equal(compare_all(rows, sizeof(rows) / sizeof(rows[0]), cut), 0)

static void options_with_a_value_are_replaced(void **state)
{
	static const struct row rows[] = {
		{"p|--password=hunter2", "p --password=***"},
		{"p|--password=a b c|x", "p --password=*** x"},
		{"p|--password|hunter2|x", "p --password *** x"},
		{"p|--password|two words|x", "p --password *** x"},
		{"p|-password|hunter2", "p -password ***"},
		{"p|--password|-s3cr3t", "p --password ***"},
		{"p|--password", NULL},
		{"p|--password|", "p --password"},
		{"p|--password=", NULL},
		{"p|--PASSWORD=x", "p --PASSWORD=***"},
		{"p|--db-password=x", "p --db-password=***"},
		{"p|--dbPassword=x", "p --dbPassword=***"},
		{"p|--passwd=x|--pass=y|--passphrase=z",
		 "p --passwd=*** --pass=*** --passphrase=***"},
		{"p|--token=x", "p --token=***"},
		{"p|--auth-token|abc|go", "p --auth-token *** go"},
		{"p|--accessToken=abc", "p --accessToken=***"},
		{"p|--client-secret=abc", "p --client-secret=***"},
		{"p|--secret-id=abc", "p --secret-id=***"},
		{"p|--api-key=abc|--apikey=b|--apiKey=c|--API_KEY=d",
		 "p --api-key=*** --apikey=*** --apiKey=*** --API_KEY=***"},
		{"p|--key=abcdef", "p --key=***"},
		{"p|--credentials=a:b", "p --credentials=***"},
		{"p|--authorization=Bearer abc", "p --authorization=***"},
		{"java|-Ddb.password=x|-Dkey=abcdef|Main", "java -Ddb.password=*** -Dkey=*** Main"},
		{"p|password=x|y", "p password=*** y"},
		{"p|token:abc", "p token:***"},
		{"p|/password:abc", "p /password:***"},
		{"openssl|rsa|-passin|pass:abc", "openssl rsa -passin pass:***"},
		{"p|--set=db.password=a,b", "p --set=db.password=***"},
		{"p|--password=1234", "p --password=***"},
		{"p|--tokens=abc,def", "p --tokens=***"},
	};

	(void)state;
	COMPARE(rows, 0);
}

static void variables_are_replaced(void **state)
{
	static const struct row rows[] = {
		{"env|FOO_TOKEN=abc|cmd", "env FOO_TOKEN=*** cmd"},
		{"env|AWS_SECRET_ACCESS_KEY=abc/d+e|AWS_REGION=eu",
		 "env AWS_SECRET_ACCESS_KEY=*** AWS_REGION=eu"},
		{"docker|run|-e|DB_PASSWORD=x|img", "docker run -e DB_PASSWORD=*** img"},
		{"docker|run|--env=DB_PASSWORD=x;y|img", "docker run --env=DB_PASSWORD=*** img"},
		{"sh|-c|TOKEN=abc ./run --verbose", "sh -c TOKEN=*** ./run --verbose"},
		{"sh|-c|./run --password hunter2 --verbose",
		 "sh -c ./run --password *** --verbose"},
		{"bash|-lc|./run --password='a b' -v", "bash -lc ./run --password='***' -v"},
		{"sh|-c|curl -H 'Authorization: Bearer a.b' http://h/x",
		 "sh -c curl -H 'Authorization: ***' http://h/x"},
		{"sh|-c|curl -H \"X-Api-Key: abc\" -v", "sh -c curl -H \"X-Api-Key: ***\" -v"},
		{"worker: password=abc job 7", "worker: password=*** job 7"},
		{"nginx: worker process", NULL},
	};

	(void)state;
	COMPARE(rows, 0);
}

static void headers_and_documents_are_replaced(void **state)
{
	static const struct row rows[] = {
		{"curl|-H|Authorization: Bearer abc.def|http://h",
		 "curl -H Authorization: *** http://h"},
		{"curl|--header=authorization: Basic YTpi", "curl --header=authorization: ***"},
		{"curl|-H|X-Auth-Token: abc", "curl -H X-Auth-Token: ***"},
		{"curl|-H|Cookie: a=b; c=d", "curl -H Cookie: ***"},
		{"curl|-H|Accept: text/html", NULL},
		{"p|Bearer abcdefgh", "p Bearer ***"},
		{"p|{\"password\":\"x\",\"user\":\"bob\"}",
		 "p {\"password\":\"***\",\"user\":\"bob\"}"},
		{"p|{\"user\": \"bob\", \"password\" : \"a\\\"b\"}",
		 "p {\"user\": \"bob\", \"password\" : \"***\"}"},
		{"p|{\"apiKey\":123456789}", "p {\"apiKey\":***}"},
		{"p|{'token': 'x', 'n': 1}", "p {'token': '***', 'n': 1}"},
		{"p|{\"tokens\":[\"a\",\"b\"],\"n\":1}", "p {\"tokens\":***,\"n\":1}"},
		{"p|{\\\"password\\\":\\\"x\\\",\\\"n\\\":1}",
		 "p {\\\"password\\\":\\\"***\\\",\\\"n\\\":1}"},
		{"p|Server=db;User Id=sa;Password=a b&c;Timeout=3",
		 "p Server=db;User Id=sa;Password=***;Timeout=3"},
		{"p|host=db password=abc dbname=x", "p host=db password=*** dbname=x"},
		{"p|{user=bob,password=x}", "p {user=bob,password=***}"},
	};

	(void)state;
	COMPARE(rows, 0);
}

static void addresses_are_replaced(void **state)
{
	static const struct row rows[] = {
		{"p|postgres://bob:secret@db:5432/x", "p postgres://bob:***@db:5432/x"},
		{"p|--dsn=postgres://bob:se/cr?et@db/x", "p --dsn=postgres://bob:***@db/x"},
		{"p|redis://:secret@h", "p redis://:***@h"},
		{"p|https://a:p@ss@h/", "p https://a:***@h/"},
		{"p|https://ghp0123456789abcdefghij@github.com/x", "p https://***@github.com/x"},
		{"p|https://h/x?token=abc&user=bob#f", "p https://h/x?token=***&user=bob#f"},
		{"p|https://h/x?user=bob&api_key=abc", "p https://h/x?user=bob&api_key=***"},
		{"p|https://h/x?X-Amz-Signature=abc&sig=def",
		 "p https://h/x?X-Amz-Signature=***&sig=***"},
		{"p|https://h/?next=https%3A%2F%2Fh%3Ftoken%3Dabc",
		 "p https://h/?next=https%3A%2F%2Fh%3Ftoken%3D***"},
		{"p|root:secret@tcp(127.0.0.1:3306)/db", "p root:***@tcp(127.0.0.1:3306)/db"},
		{"p|DSN=root:secret@db", "p DSN=root:***@db"},
		{"p|ghp_0123456789abcdefghijklmnopqrstuv", "p ***"},
		{"p|--from=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "p --from=***"},
		{"p|http://localhost:8080/x", NULL},
		{"p|http://h:80/x?mail=a@b.c", NULL},
		{"p|http://[::1]:80/x", NULL},
		{"p|ssh://git@host/x.git", NULL},
		{"p|git@github.com:a/b.git", NULL},
		{"p|nginx:1.25@sha256:abcdef", NULL},
		{"p|127.0.0.1:8080", NULL},
		{"scp|bob@host:/x|.", NULL},
	};

	(void)state;
	COMPARE(rows, 0);
}

static void options_of_known_programs_are_replaced(void **state)
{
	static const struct row rows[] = {
		{"mysql|-uroot|-phunter2|db", "mysql -uroot -p*** db"},
		{"/usr/bin/mysqldump|-p1|db", "/usr/bin/mysqldump -p*** db"},
		{"mysql|-p|db", NULL},
		{"sh|-c|mysql -phunter2 db", "sh -c mysql -p*** db"},
		{"server|-p8080", NULL},
		{"sshpass|-p|hunter2|ssh|h", "sshpass -p *** ssh h"},
		{"redis-cli|-a|hunter2|ping", "redis-cli -a *** ping"},
		{"curl|-u|bob:hunter2|http://h", "curl -u bob:*** http://h"},
		{"curl|--user|bob|http://h", NULL},
		{"docker|run|--user|1000:1000|img", NULL},
	};

	(void)state;
	COMPARE(rows, 0);
}

static void other_arguments_stay(void **state)
{
	static const struct row rows[] = {
		{"", NULL},
		{"p", NULL},
		{"p|--tokenizer=bpe|--tokenizer|bpe", NULL},
		{"p|--keyring=/x|--keyring|x", NULL},
		{"p|--keepalive=30|--keepalive|30", NULL},
		{"p|keyspace=5|monkey=7|--monkey|7|turkey:1", NULL},
		{"p|--key-file=/etc/x.pem|--key-file|x", NULL},
		{"p|--password-file=/run/pw|--token-file|x", NULL},
		{"p|--key=/etc/ssl/x.pem|--tls-key|server.key", NULL},
		{"p|--public-key=abcdef|--primary-key=id|--sort-key|x", NULL},
		{"p|--key-size=2048|--key-type|rsa", NULL},
		{"p|--max-tokens=4096|--max-tokens|4096|--tokens|100", NULL},
		{"p|--max-num-batched-tokens|8192|--max-keys=100", NULL},
		{"p|--token-ttl=3600|--password-policy|strict", NULL},
		{"p|--authorization-mode=RBAC|--token-auth-file=x.csv", NULL},
		{"p|--no-password|host|--ask-password|host", NULL},
		{"p|--passwordless=x", NULL},
		{"p|--password-stdin|--user|bob", NULL},
		{"p|--password|--user|bob|--token|-v", NULL},
		{"p|--enable-token-auth=true|--secret=false", NULL},
		{"sort|--key=2,2|--key|3", NULL},
		{"p|author=bob|--authority=ca|--compass=north|bypass=1", NULL},
		{"p|secretary=bob|--secretariat|x", NULL},
		{"p|registry/secret:latest", NULL},
		{"p|key|value|password|x", NULL},
		{"p|C:\\x|a=b|--x=y", NULL},
		{"python3|-c|print(1)", NULL},
	};

	(void)state;
	COMPARE(rows, 0);
}

/* Whatever is cut off, what is left of a secret is none of it. */
static void a_cut_defeats_nothing(void **state)
{
	static const char *const texts[] = {
		"p|--password=SECRETSECRET",
		"p|--password|SECRETSECRET",
		"p|postgres://bob:SECRETSECRET@h/x",
		"p|https://h/?token=SECRETSECRET&a=b",
		"p|{\"password\":\"SECRETSECRET\"}",
		"p|Authorization: Bearer SECRETSECRET",
		"p|root:SECRETSECRET@tcp(h)/x",
		"sh|-c|x --token 'SECRETSECRET' y",
		"mysql|-pSECRETSECRET|x",
		"curl|-u|bob:SECRETSECRET",
		"p|--api-keys=SECRETSECRET",
		"p|x:SE@CRETSECRET@h",
		"p|https://x:SE@CRETSECRET@h",
	};
	static const struct row rows[] = {
		{"p|--api-keys=12345678", "p --api-keys=***"},
		{"p|--secret=true", "p --secret=***"},
		{"p|--tls-key=/etc/", "p --tls-key=***"},
		{"p|postgres://bob:123", "p postgres://bob:***"},
		{"p|https://h/x", NULL},
	};

	(void)state;
	COMPARE(rows, 1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (size_t n = 1; n <= strlen(texts[i]); n++) {
			char text[LINE];

			snprintf(text, sizeof(text), "%.*s", (int)n, texts[i]);
			if (strstr(redacted(text, 1), "SE"))
				print_error("%s\n", text);
			assert_null(strstr(redacted(text, 1), "SE"));
		}
}

static void as_they_are_when_asked(void **state)
{
	char line[64], given[64];
	size_t n = arguments(given, "p|--password=x|y");

	(void)state;
	tacho__command_line(line, sizeof(line), given, n, 0, 1);
	assert_string_equal(line, "p --password=x y");
	tacho__command_line(line, 6, given, n, 0, 1);
	assert_string_equal(line, "p --p");
	tacho__command_line(line, 1, given, n, 0, 0);
	assert_string_equal(line, "");
	tacho__command_line(line, 18, given, n, 0, 0);
	assert_string_equal(line, "p --password=***");
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Words that mean something, and bytes that do not. */
static size_t draw(char *out, size_t most, uint64_t *x)
{
	static const char *const words[] = {
		"--password",
		"token",
		"key",
		"=",
		":",
		"://",
		"@",
		"\"",
		"'",
		"\\",
		"{",
		"}",
		"[",
		"]",
		"?",
		"&",
		",",
		";",
		" ",
		"-c",
		"mysql",
		"-p",
		"curl",
		"-u",
		"Authorization",
		"Bearer ",
		"%3D",
		"user",
		"/",
		".",
		"true",
		"123",
		"***",
		"ghp_0123456789abcdef01234",
		"--",
	};
	size_t n = 0, parts = next_random(x) % 24;

	for (size_t i = 0; i < parts && n + 40 < most; i++) {
		uint64_t r = next_random(x);

		if (r % 8 == 0) {
			out[n++] = 0;
		} else if (r % 8 == 1) {
			out[n++] = (char)(r >> 8);
		} else {
			const char *word = words[(r >> 8) % (sizeof(words) / sizeof(words[0]))];

			memcpy(out + n, word, strlen(word));
			n += strlen(word);
		}
	}
	return n;
}

static void any_bytes_are_survived(void **state)
{
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int round = 0; round < 50000; round++) {
		char given[1024], *exact, *once, *twice;
		size_t n = draw(given, sizeof(given), &x), room, a, b;
		int cut = next_random(&x) % 4 == 0;

		/* Sizes that are exact, so that sanitizers see what goes beyond. */
		exact = malloc(n + 1);
		memcpy(exact, given, n);
		exact = realloc(exact, n ? n : 1);
		room = next_random(&x) % 3 ? 4 * n + 8 : next_random(&x) % (n + 2);
		once = malloc(room ? room : 1);
		a = tacho__redact(once, room, exact, n, cut);
		assert_true(a <= room);
		if (room >= 4 * n + 8) {
			size_t zeros = 0, before = 0;

			/* Nothing more is found the second time, and arguments stay arguments. */
			twice = malloc(4 * room + 8);
			b = tacho__redact(twice, 4 * room + 8, once, a, 0);
			if (!cut && (a != b || memcmp(once, twice, a))) {
				for (size_t i = 0; i < n; i++)
					exact[i] = exact[i] ? exact[i] : '|';
				for (size_t i = 0; i < a; i++)
					once[i] = once[i] ? once[i] : '|';
				for (size_t i = 0; i < b; i++)
					twice[i] = twice[i] ? twice[i] : '|';
				print_error("%.*s\n%.*s\n%.*s\n", (int)n, exact, (int)a, once,
					    (int)b, twice);
				fail();
			}
			for (size_t i = 0; i < n; i++)
				before += exact[i] == 0;
			for (size_t i = 0; i < a; i++)
				zeros += once[i] == 0;
			assert_int_equal(before, zeros);
			free(twice);
		}
		free(exact);
		free(once);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_with_a_value_are_replaced),
		cmocka_unit_test(variables_are_replaced),
		cmocka_unit_test(headers_and_documents_are_replaced),
		cmocka_unit_test(addresses_are_replaced),
		cmocka_unit_test(options_of_known_programs_are_replaced),
		cmocka_unit_test(other_arguments_stay),
		cmocka_unit_test(a_cut_defeats_nothing),
		cmocka_unit_test(as_they_are_when_asked),
		cmocka_unit_test(any_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
