/* A library whose thread-local variables lie in the static TLS block: dlopen finds room for it only
   while the surplus of that block lasts. */
__thread char surplus[256] __attribute__((tls_model("initial-exec")));

char *surplus_address(void)
{
	return surplus;
}
