#!/usr/bin/env bash
# Machines for tests, in namespaces of their own: site.sh FOLDER PACKAGES NAME... is run by `unshare --net --pid --fork
# --mount --mount-proc --kill-child`, and all ends with it. Each machine has an address in 10.77.0.0/24, processes,
# memory files, /home, /tmp and /run of its own, an SSH server, and /mnt, FOLDER/shared, in common with the others. The
# environment in PACKAGES is below what a machine writes into ~/rayflink-venv.
set -euo pipefail

machine() { # machine FOLDER PACKAGES NAME ADDRESS: become that machine
    local folder=$1 packages=$2 name=$3 address=$4
    local layers=lowerdir=$packages,upperdir=$folder/$name-upper,workdir=$folder/$name-work
    mount --make-rprivate /
    hostname "$name"
    mount --bind "$folder/shared" /mnt
    mount --bind "$folder/$name" /home
    mount -t overlay overlay -o "$layers" /home/ray/rayflink-venv
    mount --bind "$folder/shared/passwd" /etc/passwd
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /tmp
    mkdir -p /run/sshd
    ip link set lo up
    until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
    ip addr add "$address/24" dev eth0
    ip link set eth0 up
    ip route add default via 10.77.0.1 # which leads nowhere; Ray takes the address of that way for the machine's
    cd /
    exec /usr/sbin/sshd -D -e -f /mnt/sshd_config
}

if [[ $1 == machine ]]; then
    shift
    machine "$@"
fi

folder=$1 packages=$2
shift 2
mount --make-rprivate /
ip link set lo up
ip link add machines type bridge
ip addr add 10.77.0.1/24 dev machines
ip link set machines up
number=10
for name in "$@"; do
    unshare --net --pid --fork --mount --uts --ipc --mount-proc --kill-child \
        bash "${BASH_SOURCE[0]}" machine "$folder" "$packages" "$name" "10.77.0.$number" &
    until [[ $(readlink "/proc/$!/ns/net") != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.05; done
    ip link add "to-$name" type veth peer name eth0 netns "$!"
    ip link set "to-$name" master machines up
    number=$((number + 1))
done
touch "$folder/ready"
wait
