//! Every bound of searching, named, in one place.

model::limits! {
    /// Queries of one search.
    SEARCH_QUERIES_MAX: usize = 10;
    /// One query, in characters, at least.
    SEARCH_QUERY_CHARS_MIN: usize = 2;
    /// One query, in characters.
    SEARCH_QUERY_CHARS_MAX: usize = 256;
    /// Words of one query that are looked for.
    SEARCH_QUERY_WORDS_MAX: usize = 64;
    /// Tools a search leaves out by name.
    SEARCH_EXCLUDED_MAX: usize = 50;
    /// Apps a search keeps to.
    SEARCH_APPS_MAX: usize = 10;
    /// One word of the index, in characters; the rest of it does not count.
    SEARCH_WORD_CHARS_MAX: usize = 64;
    /// Words of one field of a document that are found; the rest are not.
    SEARCH_FIELD_WORDS_MAX: usize = 2_048;
}
