return { "fs.absent": [typeof safety.fs, typeof safety.parser] };
