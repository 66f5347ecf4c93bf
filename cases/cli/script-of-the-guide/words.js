// words.js: two tools of the preset `starter`, which is the default
const counted = await callTool('countWords', { text: codecallContext.text });
const half = await callTool('evaluateExpression', { expression: `${counted.words} / 2` });
console.log('counted', counted.words);
return { words: counted.words, half: half.result };
