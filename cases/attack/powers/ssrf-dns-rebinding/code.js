const once = (await fetch("http://rebind.example.com/once")).text();
return {
  "the second request": once === "the checked address" ? await refusal(() => fetch("http://rebind.example.com/once")) : once,
  "the second hop": await refusal(() => fetch("http://swap.example.com/again")),
};
