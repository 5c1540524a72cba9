/*
 * Traces for the tools of others.
 *
 * Each takes a reader from where it is, runs the model over its events and writes what comes out
 * while it comes: memory does not grow with the length of the trace. 0, or a negative errno of
 * reading, writing or memory.
 *
 *   tacho__export_perfetto   a protobuf trace for Perfetto's trace processor and its page
 *   tacho__export_pprof      a gzipped profile.proto of the CPU samples
 *
 * Stacks that are added up, for collapsed stacks and flame graphs: stacks.h.
 */
#ifndef TACHO_EXPORT_EXPORT_H
#define TACHO_EXPORT_EXPORT_H

#include "export/proto.h"
#include "model/model.h"

struct tacho__exported {
	uint64_t packets;  /* Perfetto: packets; pprof: samples as they stand in the file */
	uint64_t samples;  /* of the trace */
	uint64_t left_out; /* frames that found no room */
	struct tacho__tracker_limits missed;
};

struct tacho__export_options {
	struct tacho__sink sink;
	int (*stop)(void *arg, uint64_t ns); /* as in tacho__model_run; may be NULL */
	void *stop_arg;
};

int tacho__export_perfetto(struct tacho_reader *reader, const struct tacho__export_options *options,
			   struct tacho__exported *exported);
int tacho__export_pprof(struct tacho_reader *reader, const struct tacho__export_options *options,
			struct tacho__exported *exported);

#endif
