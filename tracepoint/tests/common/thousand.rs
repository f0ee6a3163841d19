//! A thousand instances of one generic function, for tests that need a site in each.

/// `thousand!(f)` is a hundred arrays of ten functions: `f::<0>` to `f::<999>`.
macro_rules! thousand {
    (@$f:ident [$($done:expr),*] []) => { [$($done),*] };
    (@$f:ident [$($done:expr),*] [$digit:tt $($digits:tt)*]) => {
        thousand!(@$f [$($done,)*
            thousand!(@ten $f $digit 0), thousand!(@ten $f $digit 1), thousand!(@ten $f $digit 2), thousand!(@ten $f $digit 3), thousand!(@ten $f $digit 4),
            thousand!(@ten $f $digit 5), thousand!(@ten $f $digit 6), thousand!(@ten $f $digit 7), thousand!(@ten $f $digit 8), thousand!(@ten $f $digit 9)
        ] [$($digits)*])
    };
    (@ten $f:ident $a:tt $b:tt) => {
        [thousand!(@one $f $a $b 0), thousand!(@one $f $a $b 1), thousand!(@one $f $a $b 2), thousand!(@one $f $a $b 3), thousand!(@one $f $a $b 4),
         thousand!(@one $f $a $b 5), thousand!(@one $f $a $b 6), thousand!(@one $f $a $b 7), thousand!(@one $f $a $b 8), thousand!(@one $f $a $b 9)]
    };
    (@one $f:ident $a:tt $b:tt $c:tt) => { $f::<{ $a * 100 + $b * 10 + $c }> as fn() };
    ($f:ident) => { thousand!(@$f [] [0 1 2 3 4 5 6 7 8 9]) };
}
