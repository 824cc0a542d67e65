//! Enumerations of the API.

/// Conversions of an enum with a variant for each value, and one for other values (`Unknown(String)`).
macro_rules! words {
    ($name:ident: $($variant:ident = $word:literal),*) => {
        words!($name or Unknown: $($variant = $word),*);
    };
    ($name:ident or $other:ident: $($variant:ident = $word:literal),*) => {
        impl $name {
            /// The value in the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::$other(word) => word,
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Ok(match word {
                    $($word => Self::$variant,)*
                    other => Self::$other(other.to_owned()),
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(super) use words;
