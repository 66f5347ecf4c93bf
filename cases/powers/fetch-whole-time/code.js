return { "fetch.limit.whole": await refusal(() => fetch("http://api.example.com/drips")) };
