ringfence script check words.js
ringfence script run words.js --context '{"text": "one two three"}'
ringfence expose --preset developer > /dev/null 2>&1
ringfence script run words.js --context '{"text": "one two three"}'
ringfence expose countWords evaluateExpression > /dev/null 2>&1
ringfence script run words.js --context '{"text": "one two three"}'
