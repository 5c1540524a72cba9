/*
 * Programs that give up the rights of their user, as daemons do that begin as root.
 *
 * Their box belongs to the user that they had, and readers act with that user's rights where they look up
 * what it names. So after each of these calls the recorder finds out whether the process can still act for
 * the owner of its box, and goes on in another one if it cannot (core/control.h). A change for a while, as
 * seteuid(2) makes it for one request, leaves the saved user id as it is and is no such case.
 *
 * libc changes the user of all threads; the hooks run once, in the thread that called.
 */
#include <unistd.h>

#include "core/control.h"
#include "hooks/hooks.h"

static int changed(int result)
{
	if (!result)
		tacho__user_changed();
	return result;
}

TACHO_HOOK int setuid(uid_t uid)
{
	return changed(TACHO_REAL(setuid)(uid));
}

TACHO_HOOK int seteuid(uid_t uid)
{
	return changed(TACHO_REAL(seteuid)(uid));
}

TACHO_HOOK int setreuid(uid_t real, uid_t effective)
{
	return changed(TACHO_REAL(setreuid)(real, effective));
}

TACHO_HOOK int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	return changed(TACHO_REAL(setresuid)(real, effective, saved));
}

TACHO_HOOK int setgid(gid_t gid)
{
	return changed(TACHO_REAL(setgid)(gid));
}

TACHO_HOOK int setegid(gid_t gid)
{
	return changed(TACHO_REAL(setegid)(gid));
}

TACHO_HOOK int setregid(gid_t real, gid_t effective)
{
	return changed(TACHO_REAL(setregid)(real, effective));
}

TACHO_HOOK int setresgid(gid_t real, gid_t effective, gid_t saved)
{
	return changed(TACHO_REAL(setresgid)(real, effective, saved));
}
