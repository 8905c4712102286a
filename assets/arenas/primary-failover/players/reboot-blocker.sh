# player reboot-blocker
# skill does it right, then sees to it that the machine never comes back from a reboot
# must
systemctl mask failover-primary.service
printf 'primary\n' >/var/lib/failover/replica.role
printf '8082\n' >/var/lib/failover/upstream
---
# note A target that waits for ever, so that no boot gets anywhere.
# must
systemctl mask reboot.target poweroff.target multi-user.target
mv /sbin/init /sbin/init.away
sync
