const post = (path, body) => refusal(() => fetch(`http://api.example.com/${path}`, { method: "POST", body }));
return {
  "as it is": await post(307, `key=${token}`),
  "in JSON": await post(308, JSON.stringify({ token })),
  "in base64": await post(307, btoa(token)),
  "in a form": await post(308, new URLSearchParams({ token: `${token} é` }).toString()),
};
