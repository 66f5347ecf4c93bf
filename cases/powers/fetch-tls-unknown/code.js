return { "fetch.https-unknown-authority": await refusal(() => fetch("https://api.example.com/page")) };
