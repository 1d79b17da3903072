#!/bin/sh
# runc for hosts whose processes may not have CAP_SYS_RESOURCE: runc refuses to
# start a container that asks for a capability its own process cannot give.
# Takes the capability, and what needs it (a lowered OOM score, raised limits),
# out of a container's configuration before it is read.
set -eu
config=
previous=
for argument in "$@"; do
	case $previous in
	--bundle | -b) config=$argument/config.json ;;
	--process | -p) config=$argument ;;
	esac
	previous=$argument
done
if [ -n "$config" ]; then
	sed -i \
		-e 's/,"CAP_SYS_RESOURCE"//g' -e 's/"CAP_SYS_RESOURCE",//g' \
		-e 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' \
		-e 's/"rlimits":\[[^]]*\],\{0,1\}//' \
		"$config"
fi
exec @RUNC@ "$@"
