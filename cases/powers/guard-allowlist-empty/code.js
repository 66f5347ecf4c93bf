return { "guard.allowlist.empty": await refusal(() => fetch("http://api.example.com/")) };
