try { safety.parser.xml("<!DOCTYPE r [<!ENTITY a \"b\">]><r>&a;</r>"); } catch (error) { return [error.kind, error.reason]; }
