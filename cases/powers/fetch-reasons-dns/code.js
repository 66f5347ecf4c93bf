const message = async (url) => fetch(url).catch((error) => error.message);
return {
  "fetch.reason.dns-resolution-failed": await refusal(() => fetch("http://fails.example.com/")),
  "fetch.reason.dns-no-addresses": await refusal(() => fetch("http://empty.example.com/")),
  "fetch.reason.resolved-private-ip": await refusal(() => fetch("http://inside.example.com/")),
  "guard.strict.every-address": await refusal(() => fetch("http://mixed.example.com/")),
  "fetch.reason.literal-private-ip": await refusal(() => fetch("http://192.168.1.1/")),
  "fetch.message.literal": await message("http://192.168.1.1/"),
};
