// Calls two tools and keeps what matters.
const words = ['hello there', 'good bye'];
const cased = await parallel(words, async (text) => {
  const answer = await callTool('convertCase', { text, to: 'camel' });
  return answer.text;
});
console.log('cased', cased.length);
return { cased, who: codecallContext.who };
