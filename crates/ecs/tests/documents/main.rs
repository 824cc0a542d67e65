//! The client against the documents of the cloud: the sample response of every action, and the error codes that the
//! pages of the actions list. Both files are written from the documents, not from the client.

mod codes;
mod samples;
