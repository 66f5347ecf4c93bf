const text = async (url) => (await fetch(url)).text();
const ip = async (...hosts) => {
  const said = [];
  for (const host of hosts) said.push(await refusal(() => fetch(`http://${host}/`)));
  return said;
};
return {
  "guard.strict.public": await text("http://api.example.com/"),
  "guard.strict.public-literal": await text("http://93.184.216.34/"),
  "guard.strict.pinned": [await text("http://twofaced.example.com/"), await refusal(() => text("http://twofaced.example.com/"))],
  "guard.range.loopback": await ip("127.0.0.1", "127.255.255.254", "[::1]"),
  "guard.range.link-local": await ip("169.254.1.1", "[fe80::1]"),
  "guard.range.metadata": await ip("169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal"),
  "guard.range.private": await ip("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
  "guard.range.site-local": await ip("[fec0::1]"),
  "guard.range.unspecified": await ip("0.0.0.0", "[::]", "0.1.2.3"),
  "guard.range.multicast": await ip("224.0.0.1", "239.255.255.255", "[ff02::1]"),
  "guard.range.unique-local": await ip("[fc00::1]", "[fdff::1]"),
  "guard.range.shared": await ip("100.64.0.1", "100.127.255.254"),
  "guard.range.shared-below": await text("http://100.63.255.255/"),
  "guard.range.mapped": await ip("[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]"),
  "guard.range.special": await ip("192.0.0.1", "198.18.0.1", "192.0.2.1", "240.0.0.1", "255.255.255.255"),
  "guard.range.embedded": await ip("[64:ff9b::10.0.0.1]", "[64:ff9b:1::1]", "[2002:0a00:0001::]", "[2001:0:1:2:3:4:f5ff:fffe]", "[::10.0.0.1]", "[::ffff:0:10.0.0.1]"),
  "guard.range.local-names": await ip("localhost", "a.localhost", "printer.local", "intranet"),
};
