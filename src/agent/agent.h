/*
 * `tacho agent`: follows the boxes of all processes of the user, as root of the host, until a
 * signal tells it to end.
 */
#ifndef TACHO_AGENT_AGENT_H
#define TACHO_AGENT_AGENT_H

struct tacho__engine_options;

/* Takes over the signals of this process. 0, or a negative errno after saying why it could not
   begin. */
int tacho__agent(const struct tacho__engine_options *options);

#endif
