//! Enumerations of the API.

/// An enum with a variant for each value of the API, and one for other values.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident or $other:ident: $($(#[$about:meta])* $variant:ident = $word:literal,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(from = "String")]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant,)*
            /// Another value, as in the API.
            #[serde(untagged)]
            $other(String),
        }

        impl $name {
            /// All values except others, in the order of the cloud's documents. Users may give any of them.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),*];

            /// The value in the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::$other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)*
                    _ => Self::$other(word),
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Ok(word.to_owned().into())
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
