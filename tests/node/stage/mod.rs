//! Staging on real block devices: formatting, repeating an interrupted mkfs, rejection of foreign data, and growth.
//! Loop devices represent the attached disks. Requires root, losetup, strace and the filesystem tools.

mod features;
mod fsck;
mod grow;
mod interrupted_mkfs;
mod kit;
mod never_blank;
