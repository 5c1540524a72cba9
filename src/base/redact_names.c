#include "base/redact_names.h"

#include <string.h>

#define WORD_MAX 24u /* longer words are compared by their ends */

/* A list of words with blanks around each. */
#define HAS(list, word) has(list, sizeof(list) - 1, word)

struct word {
	char text[WORD_MAX + 1]; /* the end of it, in lower case */
	size_t size;
};

static int has(const char *list, size_t size, const struct word *w)
{
	for (const char *at = list; (at = memchr(at, ' ', size - (size_t)(at - list))); at++) {
		size_t left = size - (size_t)(at - list);

		if (left >= w->size + 2 && !memcmp(at + 1, w->text, w->size) &&
		    at[w->size + 1] == ' ')
			return 1;
	}
	return 0;
}

static int ends(const struct word *w, const char *with)
{
	size_t n = strlen(with);

	return w->size >= n && !memcmp(w->text + w->size - n, with, n);
}

/* The kind of value that a word speaks of. */
static int kind_of(const struct word *w)
{
	static const char passes[] =
		" pass pwd pw dbpass userpass mypass storepass keypass requirepass "
		"bindpass smtppass mailpass proxypass rootpass adminpass sshpass "
		"loginpass ldappass redispass masterauth ";
	static const char keys[] =
		" key apikey accesskey secretkey privatekey authkey signingkey "
		"encryptionkey masterkey sharedkey accountkey sessionkey licensekey "
		"appkey deploykey secretaccesskey ";

	if (strstr(w->text, "password") || strstr(w->text, "passwd") || ends(w, "passphrase") ||
	    ends(w, "passcode"))
		return ends(w, "passwordless") ? 0 : TACHO__SECRET;
	if (ends(w, "token") || ends(w, "secret") || ends(w, "credential") || HAS(passes, w) ||
	    HAS(" cred creds auth signature jwt ", w))
		return TACHO__SECRET;
	if (ends(w, "authorization") || HAS(" cookie cookies bearer ", w))
		return TACHO__SECRET | TACHO__HEADER;
	if (ends(w, "tokens") || ends(w, "secrets") || ends(w, "credentials"))
		return TACHO__SECRET | TACHO__MANY;
	if (HAS(keys, w))
		return TACHO__KEY;
	return HAS(" keys apikeys accesskeys ", w) ? TACHO__KEY | TACHO__MANY : 0;
}

/* Words at the end of a name that speaks of credentials without having one as its value. */
static const char about[] = " file files path paths dir folder name names type ttl length len size "
			    "count expiry expiration "
			    "expires lifetime age timeout policy algorithm alg version provider "
			    "mode method methods format "
			    "prompt stdin env field header headers limit url uri endpoint host "
			    "port manager rotation strategy "
			    "scope scopes issuer audience bits slots usage prefix separator "
			    "delimiter bucket rate burst "
			    "interval period retries check required enabled disabled encoding "
			    "charset class model cache budget "
			    "ratio window regex pattern template service server store ";
/* Keys of tables, and such as everybody may know. */
static const char plain_keys[] = " public primary foreign partition sort shard routing ";
static const char verbs[] =
	" ask prompt show list print get generate gen rotate verify use require "
	"allow enable disable with save skip check validate force delete create ";

static int is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static int is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* The next word of a name from `at` on, where it ends; words begin after what is no letter, and with a
   capital: apiKey, APIKey. */
static size_t next_word(const char *name, size_t size, size_t at, struct word *w)
{
	size_t begin;

	while (at < size && !is_upper(name[at]) && !is_lower(name[at]))
		at++;
	begin = at;
	while (at < size && (is_upper(name[at]) || is_lower(name[at]))) {
		int lower_before = at > begin && is_lower(name[at - 1]);
		int lower_after = at + 1 < size && is_lower(name[at + 1]);

		if (at > begin && is_upper(name[at]) && (lower_before || lower_after))
			break;
		at++;
	}
	w->size = at - begin < WORD_MAX ? at - begin : WORD_MAX;
	for (size_t i = 0; i < w->size; i++)
		w->text[i] = (char)(name[at - w->size + i] | 0x20);
	w->text[w->size] = 0;
	return at;
}

int tacho__redact_name(const char *name, size_t size, int queried)
{
	struct word w, last = {.size = 0};
	int kind = 0, key = 0, plain = 0, words = 0, few = 0;
	size_t at = 0;

	/* java -Dkey=value */
	if (size > 2 && name[0] == '-' && (name[1] == 'D' || name[1] == 'P'))
		at = 2;
	for (; at<size; words += w.size> 0) {
		int one;

		at = next_word(name, size, at, &w);
		if (!w.size)
			break;
		one = kind_of(&w);
		if (!words && HAS(" no without ", &w))
			return 0;
		if (!words && HAS(verbs, &w))
			kind |= TACHO__SWITCH;
		plain |= HAS(plain_keys, &w);
		few |= HAS(" max min num ", &w);
		kind |= one & TACHO__KEY ? 0 : one;
		/* A key has to come last: --key-size speaks of something else. */
		key = one & TACHO__KEY ? one : key && HAS(" id value data ", &w) ? key : 0;
		last = w;
	}
	if (queried && words == 1 && HAS(" sig ", &last))
		return TACHO__SECRET;
	if (!(kind & TACHO__SECRET))
		kind = key && !plain ? key | (kind & TACHO__SWITCH) : 0;
	return kind && !HAS(about, &last) && !(few && kind & TACHO__MANY) ? kind : 0;
}

/* ------------------------------------------------------------------- values */

int tacho__redact_is_token(const char *word, size_t size)
{
	static const char *const begins[] = {
		"ghp_",	 "gho_",  "ghu_",  "ghs_",  "ghr_",	 "github_pat_", "glpat-", "xoxb-",
		"xoxp-", "xoxa-", "xoxs-", "sk-",   "sk_live_",	 "rk_live_",	"AKIA",	  "ASIA",
		"AIza",	 "hf_",	  "npm_",  "pypi-", "dckr_pat_", "hvs.",
	};

	if (size < 20)
		return 0;
	/* A JSON web token: {"... in base64, and two dots. */
	if (!memcmp(word, "eyJ", 3) && memchr(word, '.', size))
		return 1;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!memcmp(word, begins[i], strlen(begins[i])))
			return 1;
	return 0;
}

int tacho__redact_is_path(const char *text, size_t size)
{
	static const char *const folders[] = {
		"/etc/", "/run/", "/var/", "/home/", "/root/", "/opt/", "/usr/",  "/tmp/",
		"/srv/", "/mnt/", "/app/", "./",     "../",    "~/",	"/proc/", "/dev/"};
	static const char *const endings[] = {".pem", ".key",  ".crt", ".cer", ".der",
					      ".p12", ".pfx",  ".jks", ".pub", ".json",
					      ".yml", ".yaml", ".asc", ".gpg"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (size >= strlen(folders[i]) && !memcmp(text, folders[i], strlen(folders[i])))
			return 1;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t n = strlen(endings[i]);

		if (size > n && !memcmp(text + size - n, endings[i], n))
			return 1;
	}
	return 0;
}
