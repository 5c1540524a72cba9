#!/bin/sh
# Installs what tacho needs and what is missing: Debian's packages, and the page's modules from npm.
#
#   scripts/setup.sh [--check] build|page|test|soak|bench ...
#
# With everything there it does nothing: no apt, no npm, no network. --check installs
# nothing either and only says what is missing. Status 0: all is there.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)

build_packages='gcc libc6-dev make meson ninja-build pkg-config libzstd-dev zlib1g-dev
	libdw-dev libelf-dev libiberty-dev libsqlite3-dev musl-tools python3'
page_packages='clang lld wasi-libc libclang-rt-14-dev-wasm32 esbuild node-typescript libmicrohttpd-dev'
test_packages='libcmocka-dev g++ clang lld llvm libclang-rt-14-dev clang-format clang-tidy cppcheck
	valgrind strace gdb binutils mandoc util-linux mount wasi-libc dpkg-dev libevent-dev
	libuv1-dev libasio-dev libssl-dev liburing2 busybox-static
	libjemalloc2 libgoogle-perftools4 libeatmydata1 libfaketime libproxychains4 tsocks fakeroot ltrace
	protobuf-compiler golang-go debuginfod libdebuginfod1 chromium fonts-dejavu-core'
# Subjects of tests, and those who ask them.
daemon_packages='memcached redis-server redis-tools nginx nginx-common haproxy wrk bind9 unbound tor
	dnsperf pgbouncer postgresql-15 nodejs python3-uvloop'
# The same in a soak.
soak_packages='php8.2-fpm cargo beanstalkd dnsmasq-base gearman-job-server knot lighttpd mosquitto
	ngircd nsd rsync stunnel4 tinyproxy varnish'
cross_packages='gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libc6-dev-i386 lib32gcc-12-dev'
bench_packages='lttng-tools liblttng-ust-dev babeltrace2 libuv1-dev memcached redis-server nginx'

check=no
packages=
arm64=no
page=no
for word in "$@"; do
	case $word in
	--check) check=yes ;;
	build) packages="$packages $build_packages" ;;
	page)
		packages="$packages $page_packages"
		# Others than Debian package it together with node.
		command -v npm >/dev/null 2>&1 || packages="$packages npm"
		page=yes
		;;
	test)
		packages="$packages $test_packages $daemon_packages $bench_packages"
		# On arm64 itself the ordinary build and tests are the arm64 ones.
		if [ "$(uname -m)" != aarch64 ]; then
			packages="$packages $cross_packages"
			arm64=yes
		fi
		;;
	soak) packages="$packages $soak_packages" ;;
	bench) packages="$packages $bench_packages" ;;
	*)
		echo "setup: '$word' is not a set of packages; there are: build page test soak bench" >&2
		exit 2
		;;
	esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "setup: no dpkg here, so nothing was checked. What these Debian packages hold is needed:" \
		$packages >&2
	exit 0
fi

missing=
for package in $packages; do
	status=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | head -n 1)
	[ "$status" = installed ] || missing="$missing $package"
done
missing=${missing# }

if [ -n "$missing" ]; then
	install="apt-get install -y --no-install-recommends $missing"
	as_root=
	if [ "$(id -u)" != 0 ]; then
		# sudo may ask for a password only where somebody can type it.
		if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
			as_root=sudo
		else
			as_root=none
		fi
	fi
	if [ $check = yes ] || [ "$as_root" = none ]; then
		echo "setup: these packages are missing: $missing" >&2
		echo "setup: install them as root with:  apt-get update && $install" >&2
		exit 1
	fi
	echo "setup: installing with apt-get: $missing"
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update ||
		echo "setup: 'apt-get update' failed; trying with the package lists that are here" >&2
	# Servers that are only wanted as subjects of tests are not started as services: that is
	# what Debian's packages ask policy-rc.d about.
	policy=/usr/sbin/policy-rc.d
	made=
	trap 'for file in $made; do $as_root rm -f "$file"; done' EXIT
	trap 'exit 1' HUP INT TERM
	if [ ! -e $policy ]; then
		made=$policy
		$as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
	fi
	# The same for the database that comes with PostgreSQL: the tests make their own.
	case " $missing " in
	*' postgresql-15 '*)
		clusters=/etc/postgresql-common/createcluster.d
		made="$made $clusters/tacho-setup.conf"
		$as_root sh -c "mkdir -p $clusters &&
			echo 'create_main_cluster = false' >$clusters/tacho-setup.conf"
		;;
	esac
	if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
		install -y --no-install-recommends $missing; then
		echo "setup: apt-get could not install: $missing" >&2
		echo "setup: its message above says why; then try again:  $install" >&2
		exit 1
	fi
	# Nor are they when the machine starts the next time.
	for package in $missing; do
		case " $(echo $daemon_packages $soak_packages) " in
		*" $package "*) ;;
		*) continue ;;
		esac
		units=$(dpkg-query -L "$package" |
			sed -n 's|.*/lib/systemd/system/\([^/@]*\.service\)$|\1|p')
		if [ -n "$units" ] && command -v systemctl >/dev/null 2>&1; then
			$as_root systemctl disable --quiet $units 2>/dev/null
		fi
	done
fi

# The page's modules, by the lock file that they were installed by.
installed=$root/page/node_modules/.installed-by
if [ $page = yes ] && ! cmp -s "$root/page/package-lock.json" "$installed"; then
	modules="npm ci --no-audit --no-fund --ignore-scripts --prefix $root/page"
	if [ $check = yes ]; then
		echo "setup: the page's modules are missing; install them with:  $modules" >&2
		exit 1
	fi
	echo "setup: installing with npm ci: $(sed -n 's|^\t\t"node_modules/\(.*\)": {|\1|p' \
		"$root/page/package-lock.json" | tr '\n' ' ')"
	if ! $modules >/dev/null; then
		echo "setup: npm's message above says why the page's modules are not there; then try again:  $modules" >&2
		exit 1
	fi
	cp "$root/page/package-lock.json" "$installed"
fi

if [ $arm64 = yes ] && [ $check = no ]; then
	# Without it the arm64 tests are skipped, by name; the rest goes on.
	"$root/scripts/arm64-root.sh" ||
		echo "setup: no libraries for arm64, so its tests will be skipped" >&2
fi
exit 0
