/*
 * Text for people: escaping of foreign bytes, sizes, times.
 */
#ifndef TACHO_TEXT_TEXT_H
#define TACHO_TEXT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_SMALL 48u	    /* bytes that hold any number, size, duration or time below */
#define TEXT_SENTENCE 5120u /* bytes for a sentence around a path */

/* Writes text with everything that could drive a terminal, and every byte that is not
   UTF-8, as \xNN. */
void text_put(FILE *out, const char *text);
void text_put_n(FILE *out, const char *text, size_t size);

/* The same, filled up with blanks to `width` columns. */
void text_put_wide(FILE *out, const char *text, size_t width);
/* The same from column `at` on, broken at blanks where it would go beyond `columns` (0: nowhere);
   further lines begin with `indent` blanks. */
void text_put_broken(FILE *out, const char *text, size_t at, size_t indent, size_t columns);
/* Columns that text_put takes, one to the character. */
size_t text_width(const char *text);

/* These fill `out` (TEXT_SMALL bytes) and return it. */
const char *text_bytes(char *out, uint64_t bytes);   /* 3.2 MiB */
const char *text_duration(char *out, uint64_t ns);   /* 12.345 s */
const char *text_seconds(char *out, uint64_t ns);    /* 12.345678901 */
const char *text_id(char *out, uint64_t id);	     /* decimal; hexadecimal from 2^32 on */
const char *text_utc(char *out, uint64_t real_ns);   /* 2026-01-31T12:00:00.123456789Z */
const char *text_local(char *out, uint64_t real_ns); /* 2026-01-31 13:00:00 */
const char *text_stamp(char *out, uint64_t real_ns); /* 20260131T120000Z */

/* Bytes as hexadecimal digits; out holds 2 * size + 1. */
const char *text_hex(char *out, const uint8_t *bytes, size_t size);

#endif
