// Rejections nobody handles cost their maker, and are counted without being kept.
for (let i = 0; i < 20000; i++) Promise.reject(i);
return 20000;
