//! The list of points.

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// The points, in the order in which an event, and then its ring, passes them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u64)]
        #[non_exhaustive]
        pub enum Point {
            $($(#[$doc])* $name,)*
        }

        impl Point {
            /// All points.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name used in the code.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

points! {
    /// A ring's memory is laid out, but has no magic yet.
    RingWithoutMagic
    /// A ring is complete, and has no owner yet.
    RingMade
    /// A thread has taken a ring out of the pool; the header does not show it.
    RingTaken
    /// The header has the thread's id.
    OwnerNamed
    /// The header says that the ring is owned.
    RingOwned
    /// The event is counted as fired. On the fast path this comes after its fields are written.
    Fired
    /// The buffer is marked as in use.
    Entered
    /// The record is reserved, and not written.
    Reserved
    /// The header word of the record is written, its fields are not.
    HeaderWordWritten
    /// All bytes of the record are written.
    FieldsWritten
    /// The record is counted, but not committed.
    RecordCounted
    /// The record is committed; the buffer is still marked as in use.
    Committed
    /// The buffer is no longer in use; the event is not counted as recorded yet.
    Left
    /// The event is counted as fired, and is about to be counted as lost.
    LossBegun
    /// It is counted by the reason of its loss, but not as discarded of its stream.
    LossNotDiscarded
    /// The owner is about to close its packet at the flusher's request.
    SwitchRequested
    /// The owner begins to switch from a packet to the next.
    SwitchBegun
    /// A packet is about to be closed.
    CloseBegun
    /// Its header has the end's time.
    CloseTimeWritten
    /// Its header also has its size.
    CloseSizeWritten
    /// Its header is complete, including the losses.
    CloseHeaderWritten
    /// The ring's own fields are updated, but the packet does not count as closed.
    CloseNotCounted
    /// The packet counts as closed.
    CloseCounted
    /// The slot of the next packet no longer has a magic number.
    OpenMagicGone
    /// The content size of the slot is the one of an empty packet.
    OpenContentReset
    /// Its header has the stream.
    OpenStreamWritten
    /// Its header also has the packet's number.
    OpenNumberWritten
    /// Its header is complete except for the magic.
    OpenHeaderWritten
    /// Its header is complete; the owner does not write records yet.
    OpenMagicWritten
    /// The packet is open, but the limit is still 0.
    OpenWithoutLimit
    /// The next packet is open.
    Opened
    /// A thread continues in another ring: the event is counted as fired in both.
    FiredTwice
    /// The flusher has requested the packet of an idle thread.
    FlushRequested
    /// The fence after the request has been run.
    FlushFenced
    /// The flusher holds the packet.
    FlushTaken
    /// The flusher has closed it, and still holds the buffer.
    FlushClosed
    /// The buffer belongs to the owner again.
    FlushDone
    /// A closed packet is about to be handed to the sinks.
    DrainBegun
    /// The sinks have it; its slot is not released.
    DrainTaken
    /// Its slot is released.
    DrainReleased
    /// A thread ends, or continues in another ring, and is about to close its packets for the next owner.
    HandOnBegun
    /// They are closed; the thread still has the ring.
    HandOnClosed
    /// The header shows the ring without an owner; it is not in the pool.
    HandedOn
    /// It is in the pool, undrained.
    HandOnPooled
    /// A thread ends, and still has its ring.
    EndBegun
    /// The ring is given back.
    RingEnded
    /// The ring of an ended thread is about to be recycled.
    RecycleBegun
    /// Its packets are closed.
    RecycleClosed
    /// The header shows it without an owner; it is not in the pool.
    RingSpare
    /// It is in the pool.
    RingPooled
}
