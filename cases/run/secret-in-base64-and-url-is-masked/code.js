return [btoa(token), encodeURIComponent(token + " /"), JSON.stringify({ token })];
