const good = await callTool('convertCase', { text: 'a b', to: 'camel' });
  return await callTool('convertCase', { text: good.text, to: 'nowhere' });
