//! Uevents: messages of the kernel about devices, over netlink.
//!
//! The kernel sends them to every network namespace that belongs to the initial user namespace, so a container does not
//! need the network of the host. In other namespaces the socket can be opened, but receives nothing
//! (`uevent_net_init`).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, socket};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The multicast group of the kernel; udev repeats its messages in group 2.
const KERNEL: u32 = 1;

/// Larger than any message: the kernel limits the variables to 2 KiB, and prepends the path.
const LONGEST: usize = 8 << 10;

/// The target of `/proc/self/ns/user` in the initial user namespace (`PROC_USER_INIT_INO`).
const INITIAL: &str = "user:[4026531837]";

#[derive(Debug)]
pub(super) struct Uevents(AsyncFd<OwnedFd>);

impl Uevents {
    /// Opens a socket, which queues all later messages. Must be called in a runtime.
    pub(super) fn open() -> io::Result<Self> {
        let fd = socket(
            AddressFamily::Netlink,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkKObjectUEvent,
        )?;
        // The kernel chooses the port.
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, KERNEL))?;
        watched(fd, Interest::READABLE).map(Self)
    }

    /// Returns when a disk has changed, or may have changed because messages were lost.
    pub(super) async fn next(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            if drain(ready.get_inner())? {
                return Ok(());
            }
            ready.clear_ready();
        }
    }
}

/// A descriptor that the runtime watches.
#[expect(
    deprecated,
    reason = "the replacement is unsafe, for types whose descriptor may change; these own theirs"
)]
pub(super) fn watched<T: AsRawFd>(owned: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(owned, interest)
}

/// Reads all queued messages. Returns whether any of them is about a disk.
fn drain(fd: &OwnedFd) -> io::Result<bool> {
    let mut buffer = [0; LONGEST];
    let mut is_relevant = false;
    loop {
        match recvfrom::<NetlinkAddr>(fd.as_raw_fd(), &mut buffer) {
            Ok((length, sender)) => {
                is_relevant |= is_of_kernel(sender) && is_of_disk(&buffer[..length]);
            }
            Err(Errno::EAGAIN) => return Ok(is_relevant),
            Err(Errno::EINTR) => {}
            // The queue overflowed.
            Err(Errno::ENOBUFS) => is_relevant = true,
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Any process may send to the socket; the kernel has the port 0.
fn is_of_kernel(sender: Option<NetlinkAddr>) -> bool {
    sender.is_some_and(|sender| sender.pid() == 0)
}

/// Whether the message is about a whole block device, which was added, removed or changed, such as resized.
pub(super) fn is_of_disk(message: &[u8]) -> bool {
    let has = |wanted: &[u8]| message.split(|&byte| byte == 0).any(|field| field == wanted);
    has(b"SUBSYSTEM=block") && has(b"DEVTYPE=disk")
}

/// Whether the kernel sends no uevents to this process.
pub(super) fn is_unavailable(proc: &Path) -> bool {
    fs::read_link(proc.join("self/ns/user")).is_ok_and(|own| own != Path::new(INITIAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.1 writes it when a virtio disk has grown.
    const GROWN: &[u8] = b"change@/devices/pci0000:00/0000:00:05.0/virtio2/block/vdb\0\
        ACTION=change\0DEVPATH=/devices/pci0000:00/0000:00:05.0/virtio2/block/vdb\0\
        SUBSYSTEM=block\0RESIZE=1\0MAJOR=254\0MINOR=16\0DEVNAME=vdb\0DEVTYPE=disk\0DISKSEQ=9\0\
        SEQNUM=1234\0";

    #[test]
    fn messages_about_whole_disks_count_and_others_do_not() {
        let come = b"add@/devices/x/block/vdb\0ACTION=add\0SUBSYSTEM=block\0DEVTYPE=disk\0";
        let partition = b"add@/devices/x/block/vdb/vdb1\0ACTION=add\0SUBSYSTEM=block\0DEVTYPE=partition\0";
        let queue = b"add@/devices/virtual/bdi/254:16\0ACTION=add\0SUBSYSTEM=bdi\0";
        let lies = b"add@/devices/SUBSYSTEM=block\0XSUBSYSTEM=block\0DEVTYPE=disk\0";
        for (message, counts) in [
            (GROWN, true),
            (&come[..], true),
            (&partition[..], false),
            (&queue[..], false),
            (&lies[..], false),
            (&b""[..], false),
            (&b"\0\0\xff\xfe"[..], false),
        ] {
            assert_eq!(is_of_disk(message), counts, "{}", String::from_utf8_lossy(message));
        }
    }

    #[test]
    fn messages_of_other_processes_are_ignored() {
        assert!(is_of_kernel(Some(NetlinkAddr::new(0, KERNEL))));
        assert!(!is_of_kernel(Some(NetlinkAddr::new(4711, KERNEL))));
        assert!(!is_of_kernel(None));
    }
}
