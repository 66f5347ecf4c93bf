const kept = (value, written) => (value === written && !value.includes(token) ? "gone: not resolved" : "resolved");
return { whole: kept(text, "$" + "{CASE_TOKEN}"), embedded: kept(embedded, "x$" + "{CASE_TOKEN}y") };
