//! The list of points.

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// A point of the code, in the order in which an event, and then its ring, comes by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u64)]
        #[non_exhaustive]
        pub enum Point {
            $($(#[$doc])* $name,)*
        }

        impl Point {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name, as the code has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

points! {
    /// A ring's memory is laid out, and does not have its magic yet.
    RingWithoutMagic
    /// A ring is complete, and nobody has it yet.
    RingMade
    /// A thread has a ring out of the pool; the header does not say so.
    RingTaken
    /// The header has the thread's id.
    OwnerNamed
    /// The header says that the ring is owned.
    RingOwned
    /// The event is counted as fired. On the shortest way this comes after its fields are written.
    Fired
    /// The buffer is marked as in use.
    Entered
    /// There is room for the record, and nothing of it is written.
    Reserved
    /// The header word of the record is written, its fields are not.
    HeaderWordWritten
    /// All bytes of the record are written.
    FieldsWritten
    /// The record is counted, and not committed.
    RecordCounted
    /// The record is committed; the buffer is marked as in use still.
    Committed
    /// The buffer is free; the event is not counted as recorded.
    Left
    /// The owner closes its packet because it was asked to.
    SwitchRequested
    /// The owner begins to switch from a packet to the next.
    SwitchBegun
    /// A packet is about to be closed.
    CloseBegun
    /// Its header has the end's time.
    CloseTimeWritten
    /// And its size.
    CloseSizeWritten
    /// And the losses: all of its header is written.
    CloseHeaderWritten
    /// The ring has taken note of it, and does not count it as closed.
    CloseNotCounted
    /// It counts as closed.
    CloseCounted
    /// A place that is prepared for the next packet has no magic any more.
    OpenMagicGone
    /// It has the content's size of an empty packet.
    OpenContentReset
    /// And the stream.
    OpenStreamWritten
    /// And the packet's number.
    OpenNumberWritten
    /// And all of its header but for the magic.
    OpenHeaderWritten
    /// And the magic; the owner does not write into it yet.
    OpenMagicWritten
    /// The owner knows where to write, and may not.
    OpenWithoutLimit
    /// The next packet is open.
    Opened
    /// The packet of an idle thread is asked for: the limit is set.
    FlushRequested
    /// The owner has seen that.
    FlushFenced
    /// The flusher has the packet, in place of its owner.
    FlushTaken
    /// The flusher has closed it, and not given the buffer back.
    FlushClosed
    /// The buffer is the owner's again.
    FlushDone
    /// A closed packet is about to be handed to the sinks.
    DrainBegun
    /// The sinks have it; its place is not released.
    DrainTaken
    /// Its place is released.
    DrainReleased
    /// A thread ends, and has its ring still.
    EndBegun
    /// The ring is given back.
    RingEnded
    /// The ring of a thread that has ended is about to be made ready for another.
    RecycleBegun
    /// Its packets are closed.
    RecycleClosed
    /// The header says that it is nobody's; it is not in the pool.
    RingSpare
    /// It is in the pool.
    RingPooled
}
